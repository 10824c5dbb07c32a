/* Sums of a whole array, in double for every real type.
 *
 * The array is cut into at most PIECES pieces by its length alone. A block sums each, its partial
 * sum goes to scratch, and one more block adds those. */
#include "kernels/cuda/each.h"
#include "kernels/cuda/real.h"
#include "kernels/cuda/sums.h"
#include "kernels/cuda/table.h"

namespace {

enum { PIECES = 1024, SHORTEST = 16 * MR_CUDA_THREADS };

/* partial[blockIdx.x] = the sum of x[i] w[i] over that piece; w may be NULL, for ones, or x. */
template <typename T, typename W>
__global__ void __launch_bounds__(MR_CUDA_THREADS)
    sum_pieces(int64_t n, int64_t length, const T *x, const W *w, double *partial) {
  const int64_t first = blockIdx.x * length;
  const int64_t end = first + length < n ? first + length : n;
  double sum = 0;
  for (int64_t i = first + threadIdx.x; i < end; i += MR_CUDA_THREADS) {
    const double value = (double)mr_up(x[i]);
    sum += w == NULL ? value : value * (double)mr_up(w[i]);
  }
  sum = mr_block_sum<MR_CUDA_THREADS>(sum);
  if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}

/* *y = the sum of the partial sums; one block */
template <typename Y>
__global__ void __launch_bounds__(MR_CUDA_THREADS)
    add_pieces(int64_t pieces, const double *partial, Y *y) {
  double sum = 0;
  for (int64_t i = threadIdx.x; i < pieces; i += MR_CUDA_THREADS) sum += partial[i];
  sum = mr_block_sum<MR_CUDA_THREADS>(sum);
  if (threadIdx.x == 0) *y = (Y)sum;
}

template <typename T, typename W, typename Y>
int sum(const mr_launch *l, int64_t n, const T *x, const W *w, Y *y) {
  const mr_cuda_stream *s = mr_cuda_of(l);
  double *partial = (double *)s->scratch;
  const int64_t length = mr_cuda_max(SHORTEST, mr_cuda_pieces(n, PIECES));
  const int64_t pieces = mr_cuda_pieces(n, length);
  const int error = MR_CUDA_LAUNCH((sum_pieces<T, W>), (unsigned)pieces, MR_CUDA_THREADS, 0,
                                   s->stream, n, length, x, w, partial);
  if (error != 0) return error;
  return MR_CUDA_LAUNCH(add_pieces<Y>, 1, MR_CUDA_THREADS, 0, s->stream, pieces,
                        (const double *)partial, y);
}

template <typename T>
int weighted_sum(const mr_launch *l, int64_t n, const void *x, const void *w, void *y) {
  typedef typename mr_cuda_sum<T>::type A;
  return sum(l, n, (const T *)x, (const A *)w, (A *)y);
}

template <typename T>
int sum_f64(const mr_launch *l, int64_t n, const void *x, double *y) {
  return sum(l, n, (const T *)x, (const T *)NULL, y);
}

template <typename T>
int sum_squares(const mr_launch *l, int64_t n, const void *x, double *y) {
  return sum(l, n, (const T *)x, (const T *)x, y);
}

/* dx += dy[0] w; w may be NULL, for ones */
template <typename T>
struct backward {
  typedef typename mr_cuda_sum<T>::type A;
  const A *w, *dy;
  T *dx;
  __device__ void operator()(int64_t i) const {
    const A up = dy[0];
    dx[i] = mr_down<T>(mr_up(dx[i]) + (w == NULL ? up : up * w[i]));
  }
};

template <typename T>
int weighted_sum_backward(const mr_launch *l, int64_t n, const void *w, const void *dy, void *dx) {
  typedef typename mr_cuda_sum<T>::type A;
  return mr_cuda_each(l, n, backward<T>{(const A *)w, (const A *)dy, (T *)dx});
}

template <typename T>
void rows(mr_kernels *k) {
  k->weighted_sum = weighted_sum<T>;
  k->weighted_sum_backward = weighted_sum_backward<T>;
  k->sum_f64 = sum_f64<T>;
  k->sum_squares = sum_squares<T>;
}

}  // namespace

MR_CUDA_ROWS(sum)
