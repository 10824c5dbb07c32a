/* y = x rstd w over the last axis, rstd = 1 / sqrt(mean of squares + epsilon), in the type of
 * sums. */
#include "kernels/cuda/columns.h"
#include "kernels/cuda/lines.h"
#include "kernels/cuda/table.h"

namespace {

template <typename T>
struct forward {
  typedef typename mr_cuda_sum<T>::type A;
  int64_t cols;
  A epsilon;
  const T *x, *w;
  T *y;
  A *rstd;
  template <typename Line>
  __device__ void operator()(const Line &line, int64_t row) const {
    const T *from = x + row * cols;
    T *to = y + row * cols;
    A squares = 0;
    for (int64_t col = line.thread; col < cols; col += Line::width) {
      squares += mr_up(from[col]) * mr_up(from[col]);
    }
    const A factor = 1 / sqrt(line.sum(squares) / (A)(cols > 1 ? cols : 1) + epsilon);
    if (line.thread == 0) rstd[row] = factor;
    for (int64_t col = line.thread; col < cols; col += Line::width) {
      to[col] = mr_down<T>(mr_up(from[col]) * factor * mr_up(w[col]));
    }
  }
};

template <typename T>
int rms_norm(const mr_launch *l, int64_t rows, int64_t cols, double epsilon, const void *x,
             const void *w, void *y, void *rstd) {
  typedef typename mr_cuda_sum<T>::type A;
  return mr_cuda_lines(l, rows, cols,
                       forward<T>{cols, (A)epsilon, (const T *)x, (const T *)w, (T *)y, (A *)rstd});
}

/* With g = dy w and h = x rstd: dx = or += rstd (g - h (mean of g h)). dx may be dy: the sum comes
 * first, then each thread writes only where it alone reads. */
template <typename T, bool fresh>
struct backward {
  typedef typename mr_cuda_sum<T>::type A;
  int64_t cols;
  const T *x, *w;
  const A *rstd;
  const T *dy;
  T *dx;
  template <typename Line>
  __device__ void operator()(const Line &line, int64_t row) const {
    const T *from = x + row * cols, *up = dy + row * cols;
    T *to = dx + row * cols;
    const A factor = rstd[row];
    A along = 0;
    for (int64_t col = line.thread; col < cols; col += Line::width) {
      along += mr_up(up[col]) * mr_up(w[col]) * (mr_up(from[col]) * factor);
    }
    along = line.sum(along) / (A)(cols > 1 ? cols : 1);
    for (int64_t col = line.thread; col < cols; col += Line::width) {
      const A g = mr_up(up[col]) * mr_up(w[col]);
      const A d = factor * (g - mr_up(from[col]) * factor * along);
      to[col] = mr_down<T>(fresh ? d : mr_up(to[col]) + d);
    }
  }
};

/* dy h */
template <typename T>
struct weight_gradient {
  typedef typename mr_cuda_sum<T>::type A;
  int64_t cols;
  const T *x;
  const A *rstd;
  const T *dy;
  __device__ A operator()(int64_t row, int64_t col) const {
    const int64_t at = row * cols + col;
    return mr_up(dy[at]) * (mr_up(x[at]) * rstd[row]);
  }
};

template <typename T>
int rms_norm_backward(const mr_launch *l, int fresh, int64_t rows, int64_t cols, const void *x,
                      const void *w, const void *rstd, const void *dy, void *dx, void *dw) {
  typedef typename mr_cuda_sum<T>::type A;
  const T *from = (const T *)x, *weights = (const T *)w, *up = (const T *)dy;
  const A *rstds = (const A *)rstd;
  int error = 0;
  if (dw != NULL) {
    const weight_gradient<T> gradient = {cols, from, rstds, up};
    error = mr_cuda_column_sums<A>(l, rows, cols, gradient, (A *)dw);
  }
  if (error != 0 || dx == NULL) return error; /* dx last, since it may be dy */
  if (fresh) {
    return mr_cuda_lines(l, rows, cols, backward<T, true>{cols, from, weights, rstds, up, (T *)dx});
  }
  return mr_cuda_lines(l, rows, cols, backward<T, false>{cols, from, weights, rstds, up, (T *)dx});
}

template <typename T>
void rows(mr_kernels *k) {
  k->rms_norm = rms_norm<T>;
  k->rms_norm_backward = rms_norm_backward<T>;
}

}  // namespace

MR_CUDA_ROWS(rms_norm)
