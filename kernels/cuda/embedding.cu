/* Rows of a table, chosen by id.
 *
 * Backward, without atomics: rows of equal id are linked in a chain, in their order; the block of
 * a chain's first row goes along it. */
#include "kernels/cuda/each.h"
#include "kernels/cuda/real.h"
#include "kernels/cuda/table.h"

namespace {

enum { CHAIN_ROWS = 1 << 17 }; /* that are linked at a time: each looks at all behind it */

template <typename T>
struct chosen {
  int64_t cols;
  const int32_t *ids;
  const T *w;
  T *y;
  __device__ void operator()(int64_t i) const {
    const mr_cuda_place place = mr_place(i, cols);
    y[i] = w[ids[place.row] * cols + place.col];
  }
};

template <typename T>
int embedding(const mr_launch *l, int64_t rows, int64_t cols, const int32_t *ids, const void *w,
              void *y) {
  return mr_cuda_each(l, rows * cols, chosen<T>{cols, ids, (const T *)w, (T *)y});
}

/* next[row] = the next row of the same id, or -1; has_previous[next[row]] = 1, which no other row
 * writes. */
struct link {
  int32_t rows;
  const int32_t *ids;
  int32_t *next, *has_previous;
  __device__ void operator()(int64_t row) const {
    const int32_t id = ids[row];
    int32_t other = (int32_t)row + 1;
    while (other < rows && ids[other] != id) other++;
    next[row] = other < rows ? other : -1;
    if (other < rows) has_previous[other] = 1;
  }
};

/* Block: the chain that begins at row blockIdx.x, if one does, for MR_CUDA_THREADS columns.
 * dw[id] += dy of its rows, in order. */
template <typename T>
__global__ void __launch_bounds__(MR_CUDA_THREADS)
    add_chains(int64_t cols, const int32_t *ids, const int32_t *next, const int32_t *has_previous,
               const T *dy, typename mr_cuda_sum<T>::type *dw) {
  const int64_t col = (int64_t)blockIdx.y * MR_CUDA_THREADS + threadIdx.x;
  if (col >= cols || has_previous[blockIdx.x]) return;
  typename mr_cuda_sum<T>::type *to = dw + ids[blockIdx.x] * cols + col;
  typename mr_cuda_sum<T>::type sum = *to;
  for (int64_t row = blockIdx.x; row >= 0; row = next[row]) sum += mr_up(dy[row * cols + col]);
  *to = sum;
}

template <typename T>
int backward_part(const mr_launch *l, int64_t rows, int64_t cols, const int32_t *ids, const T *dy,
                  typename mr_cuda_sum<T>::type *dw) {
  const mr_cuda_stream *s = mr_cuda_of(l);
  int32_t *next = (int32_t *)s->scratch, *has_previous = next + CHAIN_ROWS;
  int error = (int)cudaMemsetAsync(has_previous, 0, (size_t)rows * sizeof *has_previous, s->stream);
  if (error == 0) error = mr_cuda_each(l, rows, link{(int32_t)rows, ids, next, has_previous});
  if (error != 0) return error;
  const dim3 grid((unsigned)rows, (unsigned)mr_cuda_pieces(cols, MR_CUDA_THREADS));
  return MR_CUDA_LAUNCH(add_chains<T>, grid, MR_CUDA_THREADS, 0, s->stream, cols, ids,
                        (const int32_t *)next, (const int32_t *)has_previous, dy, dw);
}

template <typename T>
int embedding_backward(const mr_launch *l, int64_t rows, int64_t cols, int64_t vocabulary,
                       const int32_t *ids, const void *dy, void *dw) {
  (void)vocabulary;
  if (cols == 0) return 0;
  for (int64_t first = 0; first < rows; first += CHAIN_ROWS) {
    const int error =
        backward_part(l, mr_cuda_min(CHAIN_ROWS, rows - first), cols, ids + first,
                      (const T *)dy + first * cols, (typename mr_cuda_sum<T>::type *)dw);
    if (error != 0) return error;
  }
  return 0;
}

template <typename T>
void rows(mr_kernels *k) {
  k->embedding = embedding<T>;
  k->embedding_backward = embedding_backward<T>;
}

}  // namespace

MR_CUDA_ROWS(embedding)
