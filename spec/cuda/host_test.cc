/* cuda_host_test NAME: one thing that the host's CUDA must do, or must refuse. Prints what came
 * out, for a spec to judge; the last line is the stream's error. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <vector>

#include "kernels/cuda/cuda.h"

namespace {

enum { THREADS = 128 };

float *device_floats(int n) {
  float *memory = nullptr;
  (void)cudaMalloc(&memory, (size_t)n * sizeof(float));
  return memory;
}

std::vector<float> read(const float *from, int n) {
  std::vector<float> values((size_t)n);
  (void)cudaMemcpy(values.data(), from, (size_t)n * sizeof(float), cudaMemcpyDeviceToHost);
  return values;
}

void print_error(int error) {
  if (error == 0) error = (int)cudaDeviceSynchronize();
  printf("%s\n", error == 0 ? "good" : cudaGetErrorString((cudaError_t)error));
}

/* --- what must work --- */

__global__ void number(float *out) {
  const unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  const unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  const unsigned threads = blockDim.x * blockDim.y * blockDim.z;
  out[block * threads + thread] = (float)(block * 1000 + thread);
}

void indices() {
  const int n = 2 * 3 * 2 * 4 * 8 * 3;
  float *out = device_floats(n);
  const int error = MR_CUDA_LAUNCH(number, dim3(2, 3, 2), dim3(4, 8, 3), 0, 0, out);
  const std::vector<float> values = read(out, n);
  int wrong = 0;
  for (int i = 0; i < n; i++) wrong += values[(size_t)i] != (float)(i / 96 * 1000 + i % 96);
  printf("%d wrong of %d\n", wrong, n);
  print_error(error);
  (void)cudaFree(out);
}

__global__ void lanes(float *out) {
  const int lane = (int)threadIdx.x;
  out[lane] = __shfl_sync(~0U, (float)lane, 5);
  out[32 + lane] = __shfl_up_sync(~0U, (float)lane, 3);
  out[64 + lane] = __shfl_down_sync(~0U, (float)lane, 3);
  out[96 + lane] = __shfl_xor_sync(~0U, (float)lane, 9);
  out[128 + lane] = __shfl_down_sync(~0U, (float)lane, 1, 8);
  out[160 + lane] = __shfl_sync(~0U, (float)lane, 9, 8);
  out[192 + lane] = (float)(__ballot_sync(~0U, lane % 3 == 0) == 0x49249249U);
  out[224 + lane] = (float)(__any_sync(~0U, lane == 7) + 2 * __all_sync(~0U, lane == 7) +
                            4 * __all_sync(~0U, lane < 32));
}

void shuffles() {
  float *out = device_floats(256);
  const int error = MR_CUDA_LAUNCH(lanes, 1, 32, 0, 0, out);
  const std::vector<float> v = read(out, 256);
  int wrong = 0;
  for (int i = 0; i < 32; i++) {
    const int expected[] = {
        5, i < 3 ? i : i - 3, i > 28 ? i : i + 3, i ^ 9, i % 8 == 7 ? i : i + 1, i / 8 * 8 + 1, 1,
        5};
    for (int j = 0; j < 8; j++) wrong += v[(size_t)(32 * j + i)] != (float)expected[j];
  }
  printf("%d wrong of 256\n", wrong);
  print_error(error);
  (void)cudaFree(out);
}

/* bf16: the nearer of the two neighbours, of equals the even one */
void bf16() {
  uint64_t random = 1;
  int wrong = 0;
  for (int i = 0; i < 100000; i++) {
    random = random * 6364136223846793005U + 1442695040888963407U;
    unsigned bits = (unsigned)(random >> 32);
    if (i % 4 == 0) bits = (bits & 0xffff0000U) | 0x8000U; /* a tie */
    const float x = __uint_as_float(bits);
    if (isnan(x) || (bits & 0x7fff0000U) == 0x7f7f0000U || isinf(x)) continue;
    const float below = __uint_as_float(bits & 0xffff0000U);
    const float above = __uint_as_float((bits & 0xffff0000U) + 0x10000U);
    const double down = fabs((double)x - below), up = fabs((double)above - x);
    const bool even = (bits >> 16 & 1U) == 0;
    const float nearest = down < up || (down == up && even) ? below : above;
    wrong += __bfloat162float(__float2bfloat16(x)) != nearest;
  }
  wrong += !isnan(__bfloat162float(__float2bfloat16(NAN)));
  wrong += __bfloat162float(__float2bfloat16(INFINITY)) != INFINITY;
  wrong += __bfloat162float(__float2bfloat16(3.4e38F)) != INFINITY;
  printf("%d wrong\n", wrong);
  print_error(0);
}

/* c[16, 16] = a[16, 16] b[16, 16] + 1 by one warp */
__global__ void tile_product(const __nv_bfloat16 *a, const __nv_bfloat16 *b, float *c) {
  using namespace nvcuda;
  wmma::fragment<wmma::matrix_a, 16, 16, 16, __nv_bfloat16, wmma::row_major> x;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, __nv_bfloat16, wmma::col_major> y;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> z;
  wmma::load_matrix_sync(x, a, 16);
  wmma::load_matrix_sync(y, b, 16);
  wmma::fill_fragment(z, 1.0F);
  wmma::mma_sync(z, x, y, z);
  wmma::store_matrix_sync(c, z, 16, wmma::mem_row_major);
}

void matrices() {
  std::vector<__nv_bfloat16> a(256), b(256);
  for (int i = 0; i < 256; i++) {
    a[(size_t)i] = __nv_bfloat16((float)(i * 7 % 23 - 11));
    b[(size_t)i] = __nv_bfloat16((float)(i * 5 % 19 - 9));
  }
  __nv_bfloat16 *x = nullptr, *y = nullptr;
  (void)cudaMalloc(&x, 512);
  (void)cudaMalloc(&y, 512);
  (void)cudaMemcpy(x, a.data(), 512, cudaMemcpyHostToDevice);
  (void)cudaMemcpy(y, b.data(), 512, cudaMemcpyHostToDevice);
  float *c = device_floats(256);
  const int error = MR_CUDA_LAUNCH(tile_product, 1, 32, 0, 0, x, y, c);
  const std::vector<float> got = read(c, 256);
  int wrong = 0;
  for (int i = 0; i < 16; i++) {
    for (int j = 0; j < 16; j++) {
      float sum = 1; /* whole numbers: exact */
      for (int k = 0; k < 16; k++)
        sum += (float)a[(size_t)(i * 16 + k)] * (float)b[(size_t)(j * 16 + k)];
      wrong += got[(size_t)(i * 16 + j)] != sum;
    }
  }
  printf("%d wrong of 256\n", wrong);
  print_error(error);
  (void)cudaFree(x);
  (void)cudaFree(y);
  (void)cudaFree(c);
}

__global__ void plus_one(int n, const float *x, float *y) {
  const int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) y[i] = x[i] + 1;
}

/* y = x + 1 on one stream, z = y + 1 on another, with or without an event between them; how many
 * of 20 seeds gave a wrong z. */
int wrong_with_event(bool event_between) {
  const int n = 1000;
  float *x = device_floats(n), *y = device_floats(n), *z = device_floats(n);
  cudaStream_t first, second;
  cudaEvent_t event;
  (void)cudaStreamCreate(&first);
  (void)cudaStreamCreate(&second);
  (void)cudaEventCreate(&event);
  int wrong = 0;
  for (uint64_t seed = 1; seed <= 20; seed++) {
    mr_host_seed(seed);
    (void)cudaMemset(x, 0, n * sizeof(float));
    (void)cudaMemset(y, 0, n * sizeof(float));
    (void)MR_CUDA_LAUNCH(plus_one, 8, THREADS, 0, first, n, (const float *)x, y);
    (void)cudaEventRecord(event, first);
    if (event_between) (void)cudaStreamWaitEvent(second, event, 0);
    (void)MR_CUDA_LAUNCH(plus_one, 8, THREADS, 0, second, n, (const float *)y, z);
    (void)cudaDeviceSynchronize();
    wrong += read(z, n)[999] != 2;
  }
  (void)cudaEventDestroy(event);
  (void)cudaStreamDestroy(first);
  (void)cudaStreamDestroy(second);
  (void)cudaFree(x);
  (void)cudaFree(y);
  (void)cudaFree(z);
  return wrong;
}

void events() {
  printf("with an event %d of 20 seeds wrong\n", wrong_with_event(true));
  printf("without one %s\n", wrong_with_event(false) > 0 ? "some" : "none");
  print_error(0);
}

/* Pinned memory is read when the stream comes to it, other memory at once. */
void copies() {
  float *pinned = nullptr, plain = 1, *to = device_floats(2);
  (void)cudaMallocHost((void **)&pinned, sizeof(float));
  cudaStream_t stream;
  (void)cudaStreamCreate(&stream);
  int late = 0, wrong = 0;
  for (uint64_t seed = 1; seed <= 20; seed++) {
    mr_host_seed(seed);
    plain = *pinned = 1;
    (void)cudaMemcpyAsync(to, pinned, sizeof(float), cudaMemcpyHostToDevice, stream);
    (void)cudaMemcpyAsync(to + 1, &plain, sizeof(float), cudaMemcpyHostToDevice, stream);
    plain = *pinned = 2;
    (void)cudaStreamSynchronize(stream);
    const std::vector<float> got = read(to, 2);
    late += got[0] == 2;
    wrong += got[1] != 1;
  }
  printf("pinned memory read %s; other memory wrong %d times\n", late > 0 ? "late" : "at once",
         wrong);
  print_error(0);
  (void)cudaStreamDestroy(stream);
  (void)cudaFreeHost(pinned);
  (void)cudaFree(to);
}

/* Fresh memory, of the device and shared, holds NaNs. */
__global__ void copy_shared(float *out) {
  MR_CUDA_SHARED(float, fresh, [THREADS]);
  out[threadIdx.x] = fresh[threadIdx.x];
}

void fresh() {
  float *out = device_floats(THREADS);
  printf("device memory %f\n", (double)read(out, 1)[0]);
  const int error = MR_CUDA_LAUNCH(copy_shared, 1, THREADS, 0, 0, out);
  printf("shared memory %f\n", (double)read(out, 1)[0]);
  print_error(error);
  (void)cudaFree(out);
}

/* --- what must be found --- */

__global__ void half_leaves(float *out) {
  if (threadIdx.x >= 64) return;
  __syncthreads();
  out[threadIdx.x] = 1;
}

__global__ void two_barriers(float *out) {
  if (threadIdx.x < 64) {
    __syncthreads();
  } else {
    __syncthreads();
  }
  out[threadIdx.x] = 1;
}

__global__ void half_warp(float *out) {
  float value = 1;
  if (threadIdx.x % 32 < 16) value = __shfl_xor_sync(~0U, value, 1);
  out[threadIdx.x] = value;
}

__global__ void two_masks(float *out) {
  out[threadIdx.x] = __shfl_xor_sync(threadIdx.x % 32 < 16 ? ~0U : 0xffff0000U, 1.0F, 1);
}

__global__ void not_in_mask(float *out) { out[threadIdx.x] = __shfl_xor_sync(0xffffU, 1.0F, 1); }

__global__ void shuffle_and_barrier(float *out) {
  if (threadIdx.x < 32) {
    __syncwarp();
    __syncthreads();
  } else {
    out[threadIdx.x] = __shfl_xor_sync(~0U, 1.0F, 1);
  }
}

__global__ void much_shared(float *out) {
  MR_CUDA_SHARED(double, all, [7000]);
  all[threadIdx.x] = 1;
  out[threadIdx.x] = (float)all[threadIdx.x];
}

struct holder {
  float factor;
  const float *x;
};

__global__ void from_struct(holder h, float *out) { out[threadIdx.x] = h.factor * h.x[0]; }

void launch(void (*kernel)(float *)) {
  float *out = device_floats(THREADS);
  print_error(MR_CUDA_LAUNCH(kernel, 2, THREADS, 0, 0, out));
  (void)cudaDeviceReset();
  (void)cudaFree(out);
}

void host_pointer() {
  float out[THREADS];
  print_error(MR_CUDA_LAUNCH(copy_shared, 1, THREADS, 0, 0, out));
}

void host_pointer_in_struct() {
  const float here = 1;
  float *out = device_floats(THREADS);
  const holder h = {2, &here};
  print_error(MR_CUDA_LAUNCH(from_struct, 1, THREADS, 0, 0, h, out));
  (void)cudaFree(out);
}

void freed() {
  float *out = device_floats(THREADS);
  (void)cudaFree(out);
  print_error(MR_CUDA_LAUNCH(copy_shared, 1, THREADS, 0, 0, out));
}

void wrong_grid() {
  float *out = device_floats(THREADS);
  print_error(MR_CUDA_LAUNCH(copy_shared, 1, 2048, 0, 0, out));
  (void)cudaFree(out);
}

void wrong_copy() {
  float here[2] = {0, 0}, *out = device_floats(1);
  print_error((int)cudaMemcpy(out, here, sizeof here, cudaMemcpyHostToDevice));
  (void)cudaFree(out);
}

/* The next two end the process under AddressSanitizer; without it they may pass unseen. */

void host_reads() {
  volatile float *memory = device_floats(1);
  printf("%f\n", (double)*memory);
}

__global__ void past_the_end(float *out) { out[threadIdx.x + 1] = 1; }

__global__ void past_shared(float *out) {
  MR_CUDA_SHARED(float, all, [THREADS]);
  all[threadIdx.x] = 1;
  __syncthreads();
  out[threadIdx.x] = all[threadIdx.x + 1];
}

struct test {
  const char *name;
  void (*run)();
};

const test tests[] = {
    {"indices", indices},
    {"shuffles", shuffles},
    {"bf16", bf16},
    {"matrices", matrices},
    {"events", events},
    {"copies", copies},
    {"fresh", fresh},
    {"half_leaves", [] { launch(half_leaves); }},
    {"two_barriers", [] { launch(two_barriers); }},
    {"half_warp", [] { launch(half_warp); }},
    {"two_masks", [] { launch(two_masks); }},
    {"not_in_mask", [] { launch(not_in_mask); }},
    {"shuffle_and_barrier", [] { launch(shuffle_and_barrier); }},
    {"much_shared", [] { launch(much_shared); }},
    {"host_pointer", host_pointer},
    {"host_pointer_in_struct", host_pointer_in_struct},
    {"freed", freed},
    {"wrong_grid", wrong_grid},
    {"wrong_copy", wrong_copy},
    {"host_reads", host_reads},
    {"past_the_end", [] { launch(past_the_end); }},
    {"past_shared", [] { launch(past_shared); }},
};

}  // namespace

int main(int argc, char **argv) {
  for (const test &t : tests) {
    if (argc == 2 && strcmp(argv[1], t.name) == 0) {
      t.run();
      return 0;
    }
  }
  fprintf(stderr, "usage: cuda_host_test NAME\n");
  return 2;
}
