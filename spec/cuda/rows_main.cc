/* cuda_rows [--barriers] [SEED ...]: every row of kernels.h, run by the GPUs' kernels on the host,
 * beside the processor's. Prints differences, rows without a case or a kernel, and a closing line;
 * exit code 1 where anything differs. With --barriers it then does so again without each barrier
 * of the kernels in turn, and exit code 1 means that one of them was not missed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kernels/cuda/errors.h"
#include "kernels/cuda/table.h"
#include "rows.h"

extern "C" {
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/rows.h"
}

namespace rows {

const std::vector<int64_t> extents = {0, 1, 2, 3, 7, 31, 32, 33, 61, 127, 257, 300, 1031};
const std::vector<int64_t> few_extents = {0, 1, 5, 33, 67, 129};

std::vector<registered> &registry() {
  static std::vector<registered> all;
  return all;
}

double uniform(run &r) {
  r.random = r.random * 6364136223846793005U + 1442695040888963407U; /* Knuth's */
  return (double)(int64_t)(r.random >> 11) * 0x1p-52 - 1;
}

/* Behind each array on the device lie bytes that must stay as they are. */
enum { GUARD = 64, GUARD_BYTE = 0x5a };

static int copy_in(array *a) {
  const size_t bytes = a->bytes.size();
  cudaError_t error = cudaMalloc(&a->gpu, bytes + GUARD);
  if (error != cudaSuccess) return (int)error;
  error = cudaMemset(a->gpu, GUARD_BYTE, bytes + GUARD);
  if (error != cudaSuccess) return (int)error;
  return (int)cudaMemcpy(a->gpu, a->bytes.data(), bytes, cudaMemcpyHostToDevice);
}

static int copy_out(array *a) {
  const size_t bytes = a->bytes.size();
  std::vector<unsigned char> all(bytes + GUARD);
  cudaError_t error = cudaMemcpy(all.data(), a->gpu, bytes + GUARD, cudaMemcpyDeviceToHost);
  if (error != cudaSuccess) return (int)error;
  for (size_t i = bytes; i < all.size(); i++) {
    if (all[i] != GUARD_BYTE) return (int)cudaErrorIllegalAddress;
  }
  all.resize(bytes);
  a->bytes = all;
  return 0;
}

int on_device(run &, const std::vector<array *> &arrays, const std::function<int()> &call) {
  int error = 0;
  for (array *a : arrays) error = error != 0 ? error : copy_in(a);
  if (error == 0) error = call();
  if (error == 0) error = (int)cudaDeviceSynchronize();
  for (array *a : arrays) error = error != 0 ? error : copy_out(a);
  if (error != 0) fprintf(stderr, "error %d: %s\n", error, mr_cuda_error_text(error));
  if (error == cudaErrorLaunchFailure) (void)cudaDeviceReset();
  for (array *a : arrays) {
    (void)cudaFree(a->gpu);
    a->gpu = nullptr;
  }
  return error;
}

void differ(run &r, const std::string &what, int64_t index, double got, double expected) {
  if (++r.failures <= 40) {
    printf("%s [%lld]: %.17g instead of %.17g\n", what.c_str(), (long long)index, got, expected);
  }
}

}  // namespace rows

static int open_stream(mr_cuda_stream *s) {
  *s = mr_cuda_stream{};
  if (cudaStreamCreate(&s->stream) != cudaSuccess ||
      cudaMalloc(&s->workspace, MR_CUDA_WORKSPACE) != cudaSuccess ||
      cudaMalloc(&s->scratch, MR_CUDA_SCRATCH) != cudaSuccess) {
    return (int)cudaGetLastError();
  }
  return mr_cuda_stream_prepare(s);
}

static void close_stream(mr_cuda_stream *s) {
  mr_cuda_stream_finish(s);
  (void)cudaFree(s->workspace);
  (void)cudaFree(s->scratch);
  (void)cudaStreamDestroy(s->stream);
}

static void print_names(const char *what, const std::set<std::string> &names) {
  if (names.empty()) return;
  printf("%s:", what);
  for (const std::string &name : names) printf(" %s", name.c_str());
  printf("\n");
}

/* All cases; with `brief`, until something differs. */
static void run_all(rows::run *r, mr_cuda_stream *stream, bool brief) {
  r->cpu_launch = mr_launch{1, nullptr};
  r->gpu_launch = mr_launch{1, stream};
  const mr_kernels *const cpu[3] = {mr_cpu_kernels_f32(), mr_cpu_kernels_f64(),
                                    mr_cpu_kernels_f32()};
  const mr_kernels *const gpu[3] = {mr_cuda_kernels_f32(), mr_cuda_kernels_f64(),
                                    mr_cuda_kernels_bf16()};
  for (const rows::registered &each : rows::registry()) {
    if (brief && r->failures > 0) return;
    each.all(*r, cpu, gpu);
  }
}

/* What no case ran, and what there is no kernel of. */
static void find_gaps(rows::run *r, std::set<std::string> *without_case) {
#define LOOK(row)                            \
  if (mr_cuda_kernels_f32()->row == nullptr) \
    r->missing.insert(#row);                 \
  else if (r->compared.count(#row) == 0)     \
    without_case->insert(#row);
  MR_CPU_ROWS(LOOK)
#undef LOOK
}

/* Does a run without that barrier differ, or break down? In a process of its own. */
static bool missed(const mr_host_barrier *barrier, const std::vector<uint64_t> &seeds,
                   mr_cuda_stream *stream) {
  fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    if (freopen("/dev/null", "w", stdout) == nullptr) _exit(0);
    if (freopen("/dev/null", "w", stderr) == nullptr) _exit(0);
    mr_host_skip_barrier(barrier);
    rows::run r;
    r.seeds = seeds;
    run_all(&r, stream, true);
    _exit(r.failures > 0 ? 1 : 0);
  }
  int status = 0;
  return child > 0 && waitpid(child, &status, 0) == child &&
         !(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static int remove_barriers(const std::vector<uint64_t> &seeds, mr_cuda_stream *stream) {
  int count = 0, unmissed = 0;
  while (mr_host_barrier_at(count) != nullptr) {
    const mr_host_barrier barrier = *mr_host_barrier_at(count++);
    if (missed(&barrier, seeds, stream)) continue;
    unmissed++;
    printf("not missed: the barrier at %s:%d\n", barrier.file, barrier.line);
  }
  printf("%d barriers, %d not missed\n", count, unmissed);
  return count == 0 ? 1 : unmissed;
}

int main(int argc, char **argv) {
  rows::run r;
  const bool barriers = argc > 1 && strcmp(argv[1], "--barriers") == 0;
  for (int i = barriers ? 2 : 1; i < argc; i++) {
    r.seeds.push_back(strtoull(argv[i], nullptr, 10));
  }
  if (r.seeds.empty()) r.seeds = {1, 2, 3};
  mr_cuda_stream stream;
  const int error = open_stream(&stream);
  if (error != 0) {
    fprintf(stderr, "no stream: %s\n", mr_cuda_error_text(error));
    return 4;
  }
  mr_cpu_prepare();
  run_all(&r, &stream, false);
  std::set<std::string> without_case;
  find_gaps(&r, &without_case);
  print_names("without a kernel", r.missing);
  print_names("without a case", without_case);
  const mr_host_counts counts = mr_host_count();
  printf("%zu rows, %lld comparisons, %lld differences; %lld launches, %lld blocks, %lld waits\n",
         r.compared.size(), (long long)r.comparisons, (long long)r.failures,
         (long long)counts.launches, (long long)counts.blocks, (long long)counts.waits);
  const int unmissed = barriers && r.failures == 0 ? remove_barriers(r.seeds, &stream) : 0;
  close_stream(&stream);
  return r.failures > 0 || !without_case.empty() || unmissed > 0 ? 1 : 0;
}
