/* Sums over the rows of a matrix, for gradients of what was repeated over them.
 *
 * Rows are cut into pieces by the shape alone. A block sums 32 columns of a piece; the pieces'
 * sums lie in scratch, and are added in order. */
#ifndef MR_CUDA_COLUMNS_H
#define MR_CUDA_COLUMNS_H

#include <stdint.h>

#include "kernels/cuda/each.h"
#include "kernels/cuda/real.h"

enum { MR_CUDA_LINES = 8, MR_CUDA_MOST_PIECES = 128, MR_CUDA_SHORT_PIECE = 64 };

/* partial[blockIdx.y][col] = the sum of f(row, col) over the rows of piece blockIdx.y, for the 32
 * columns of blockIdx.x. Block: 32 columns x MR_CUDA_LINES rows. */
template <typename A, typename F>
__global__ void __launch_bounds__(32 * MR_CUDA_LINES)
    mr_cuda_columns_kernel(int64_t rows, int64_t cols, int64_t length, F f, A *partial) {
  MR_CUDA_SHARED(A, sums, [MR_CUDA_LINES][32]);
  const int64_t col = (int64_t)blockIdx.x * 32 + threadIdx.x;
  const int64_t first = blockIdx.y * length;
  const int64_t end = first + length < rows ? first + length : rows;
  A sum = 0;
  if (col < cols) {
    for (int64_t row = first + threadIdx.y; row < end; row += MR_CUDA_LINES) sum += f(row, col);
  }
  sums[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y > 0 || col >= cols) return;
  for (int line = 1; line < MR_CUDA_LINES; line++) sum += sums[line][threadIdx.x];
  partial[blockIdx.y * cols + col] = sum;
}

/* f, of columns from `first` on */
template <typename F>
struct mr_cuda_from_column {
  int64_t first;
  F f;
  __device__ auto operator()(int64_t row, int64_t col) const { return f(row, first + col); }
};

/* total[col] += the pieces' sums */
template <typename T>
struct mr_cuda_add_pieces {
  typedef typename mr_cuda_sum<T>::type A;
  int64_t cols, pieces;
  const A *partial;
  T *total;
  __device__ void operator()(int64_t col) const {
    A sum = partial[col];
    for (int64_t i = 1; i < pieces; i++) sum += partial[i * cols + col];
    total[col] = mr_down<T>(mr_up(total[col]) + sum);
  }
};

/* total[cols] += the sum of f(row, col) over the rows; f is a struct with a __device__
 * operator()(int64_t row, int64_t col) that gives mr_cuda_sum<T>::type. Uses scratch. */
template <typename T, typename F>
inline int mr_cuda_column_sums(const mr_launch *l, int64_t rows, int64_t cols, F f, T *total) {
  typedef typename mr_cuda_sum<T>::type A;
  if (rows == 0 || cols == 0) return 0;
  const mr_cuda_stream *s = mr_cuda_of(l);
  const int64_t room = (int64_t)(MR_CUDA_SCRATCH / sizeof(A));
  for (int64_t first = 0; first < cols; first += room) { /* once, unless there are millions */
    const int64_t count = mr_cuda_min(cols - first, room);
    const int64_t most = mr_cuda_min(room / count, MR_CUDA_MOST_PIECES);
    const int64_t length = mr_cuda_max(mr_cuda_pieces(rows, most), MR_CUDA_SHORT_PIECE);
    const int64_t pieces = mr_cuda_pieces(rows, length);
    const mr_cuda_from_column<F> from = {first, f};
    const dim3 grid((unsigned)mr_cuda_pieces(count, 32), (unsigned)pieces),
        block(32, MR_CUDA_LINES);
    int error = MR_CUDA_LAUNCH((mr_cuda_columns_kernel<A, mr_cuda_from_column<F>>), grid, block, 0,
                               s->stream, rows, count, length, from, (A *)s->scratch);
    if (error == 0) {
      const mr_cuda_add_pieces<T> add = {count, pieces, (const A *)s->scratch, total + first};
      error = mr_cuda_each(l, count, add);
    }
    if (error != 0) return error;
  }
  return 0;
}

/* x[rows, cols] */
template <typename T>
struct mr_cuda_element {
  int64_t cols;
  const T *x;
  __device__ typename mr_cuda_sum<T>::type operator()(int64_t row, int64_t col) const {
    return mr_up(x[row * cols + col]);
  }
};

#endif
