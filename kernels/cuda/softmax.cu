/* Softmax over the last axis. */
#include "kernels/cuda/lines.h"
#include "kernels/cuda/table.h"

namespace {

template <typename T>
struct forward {
  typedef typename mr_cuda_sum<T>::type A;
  int64_t cols;
  const T *x;
  T *y;
  template <typename Line>
  __device__ void operator()(const Line &line, int64_t row) const {
    const T *from = x + row * cols;
    T *to = y + row * cols;
    const mr_cuda_exponentials<A> all = mr_line_exponentials(line, cols, from);
    const A share = 1 / all.sum;
    for (int64_t col = line.thread; col < cols; col += Line::width) {
      to[col] = mr_down<T>(exp(mr_up(from[col]) - all.greatest) * share);
    }
  }
};

template <typename T>
int softmax(const mr_launch *l, int64_t rows, int64_t cols, const void *x, void *y) {
  return mr_cuda_lines(l, rows, cols, forward<T>{cols, (const T *)x, (T *)y});
}

/* dx += y (dy - sum of y dy) */
template <typename T>
struct backward {
  typedef typename mr_cuda_sum<T>::type A;
  int64_t cols;
  const T *y, *dy;
  T *dx;
  template <typename Line>
  __device__ void operator()(const Line &line, int64_t row) const {
    const int64_t at = row * cols;
    A sum = 0;
    for (int64_t col = line.thread; col < cols; col += Line::width) {
      sum += mr_up(y[at + col]) * mr_up(dy[at + col]);
    }
    sum = line.sum(sum);
    for (int64_t col = line.thread; col < cols; col += Line::width) {
      const A d = mr_up(y[at + col]) * (mr_up(dy[at + col]) - sum);
      dx[at + col] = mr_down<T>(mr_up(dx[at + col]) + d);
    }
  }
};

template <typename T>
int softmax_backward(const mr_launch *l, int64_t rows, int64_t cols, const void *y, const void *dy,
                     void *dx) {
  return mr_cuda_lines(l, rows, cols, backward<T>{cols, (const T *)y, (const T *)dy, (T *)dx});
}

template <typename T>
void rows(mr_kernels *k) {
  k->softmax = softmax<T>;
  k->softmax_backward = softmax_backward<T>;
}

}  // namespace

MR_CUDA_ROWS(softmax)
