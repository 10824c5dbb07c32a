/* The negative log-probability of one target per row of logits; a negative target is ignored.
 * lse, loss and dloss are in the type of sums. */
#include "kernels/cuda/lines.h"
#include "kernels/cuda/table.h"

namespace {

template <typename T>
struct forward {
  typedef typename mr_cuda_sum<T>::type A;
  int64_t cols;
  const T *x;
  const int32_t *targets;
  A *loss, *lse;
  template <typename Line>
  __device__ void operator()(const Line &line, int64_t row) const {
    const T *from = x + row * cols;
    const mr_cuda_exponentials<A> all = mr_line_exponentials(line, cols, from);
    if (line.thread > 0) return;
    const A whole = all.greatest + log(all.sum);
    const int32_t target = targets[row];
    lse[row] = whole;
    loss[row] = target < 0 ? 0 : whole - mr_up(from[target]);
  }
};

template <typename T>
int cross_entropy(const mr_launch *l, int64_t rows, int64_t cols, const void *x,
                  const int32_t *targets, void *loss, void *lse) {
  typedef typename mr_cuda_sum<T>::type A;
  return mr_cuda_lines(l, rows, cols, forward<T>{cols, (const T *)x, targets, (A *)loss, (A *)lse});
}

/* dx = or += dloss (e^(x - lse) - 1 at the target); x may be dx: each thread writes only where it
 * alone reads. */
template <typename T>
struct backward {
  typedef typename mr_cuda_sum<T>::type A;
  bool fresh;
  int64_t cols;
  const T *x;
  const A *lse;
  const int32_t *targets;
  const A *dloss;
  T *dx;
  template <typename Line>
  __device__ void operator()(const Line &line, int64_t row) const {
    const int32_t target = targets[row];
    const T *from = x + row * cols;
    T *to = dx + row * cols;
    if (target < 0) {
      for (int64_t col = line.thread; fresh && col < cols; col += Line::width) {
        to[col] = mr_down<T>(0);
      }
      return;
    }
    const A up = dloss[row], whole = lse[row];
    MR_CUDA_ROLLED
    for (int64_t col = line.thread; col < cols; col += Line::width) {
      const A p = exp(mr_up(from[col]) - whole);
      const A d = up * (col == target ? p - 1 : p);
      to[col] = mr_down<T>(fresh ? d : mr_up(to[col]) + d);
    }
  }
};

template <typename T>
int cross_entropy_backward(const mr_launch *l, int fresh, int64_t rows, int64_t cols, const void *x,
                           const void *lse, const int32_t *targets, const void *dloss, void *dx) {
  typedef typename mr_cuda_sum<T>::type A;
  return mr_cuda_lines(l, rows, cols,
                       backward<T>{fresh != 0, cols, (const T *)x, (const A *)lse, targets,
                                   (const A *)dloss, (T *)dx});
}

template <typename T>
void rows(mr_kernels *k) {
  k->cross_entropy = cross_entropy<T>;
  k->cross_entropy_backward = cross_entropy_backward<T>;
}

}  // namespace

MR_CUDA_ROWS(cross_entropy)
