/* y = (x - mean) rstd w + b over the last axis, rstd = 1 / sqrt(variance + epsilon); mean and rstd
 * are in the type of sums. */
#include "kernels/cuda/columns.h"
#include "kernels/cuda/lines.h"
#include "kernels/cuda/table.h"

namespace {

/* Of x, or of x + added, which then is written to `sum` and read from there: each thread reads
 * what it wrote itself. */
template <typename T>
struct forward {
  typedef typename mr_cuda_sum<T>::type A;
  int64_t cols;
  A epsilon;
  const T *x, *added, *w, *b;
  T *sum, *y;
  A *mean, *rstd;

  template <typename Line>
  __device__ void add(const Line &line, int64_t at) const {
    for (int64_t col = at + line.thread; col < at + cols; col += Line::width) {
      sum[col] = mr_down<T>(mr_up(x[col]) + mr_up(added[col]));
    }
  }

  template <typename Line>
  __device__ void operator()(const Line &line, int64_t row) const {
    const T *from = (added == NULL ? x : sum) + row * cols;
    T *to = y + row * cols;
    const A share = 1 / (A)(cols > 1 ? cols : 1);
    A plain = 0, squares = 0;
    if (added != NULL) add(line, row * cols);
    for (int64_t col = line.thread; col < cols; col += Line::width) plain += mr_up(from[col]);
    const A middle = line.sum(plain) * share;
    for (int64_t col = line.thread; col < cols; col += Line::width) {
      const A off = mr_up(from[col]) - middle;
      squares += off * off;
    }
    const A factor = 1 / sqrt(line.sum(squares) * share + epsilon);
    if (line.thread == 0) {
      mean[row] = middle;
      rstd[row] = factor;
    }
    for (int64_t col = line.thread; col < cols; col += Line::width) {
      const A scaled = (mr_up(from[col]) - middle) * factor * mr_up(w[col]);
      to[col] = mr_down<T>(b == NULL ? scaled : scaled + mr_up(b[col]));
    }
  }
};

template <typename T>
int add_layer_norm(const mr_launch *l, int64_t rows, int64_t cols, double epsilon, const void *a,
                   const void *b, const void *w, const void *bias, void *sum, void *y, void *mean,
                   void *rstd) {
  typedef typename mr_cuda_sum<T>::type A;
  return mr_cuda_lines(l, rows, cols,
                       forward<T>{cols, (A)epsilon, (const T *)a, (const T *)b, (const T *)w,
                                  (const T *)bias, (T *)sum, (T *)y, (A *)mean, (A *)rstd});
}

template <typename T>
int layer_norm(const mr_launch *l, int64_t rows, int64_t cols, double epsilon, const void *x,
               const void *w, const void *b, void *y, void *mean, void *rstd) {
  return add_layer_norm<T>(l, rows, cols, epsilon, x, NULL, w, b, NULL, y, mean, rstd);
}

/* With g = dy w and h = (x - mean) rstd: dx = or += rstd (g - mean of g - h (mean of g h)). dx may
 * be dy: sums come first, then each thread writes only where it alone reads. */
template <typename T, bool fresh>
struct backward {
  typedef typename mr_cuda_sum<T>::type A;
  int64_t cols;
  A share;
  const T *x, *w;
  const A *mean, *rstd;
  const T *dy;
  T *dx;
  template <typename Line>
  __device__ void operator()(const Line &line, int64_t row) const {
    const T *from = x + row * cols, *up = dy + row * cols;
    T *to = dx + row * cols;
    const A middle = mean[row], factor = rstd[row];
    A plain = 0, along = 0;
    for (int64_t col = line.thread; col < cols; col += Line::width) {
      const A g = mr_up(up[col]) * mr_up(w[col]);
      plain += g;
      along += g * ((mr_up(from[col]) - middle) * factor);
    }
    plain = line.sum(plain) * share;
    along = line.sum(along) * share;
    for (int64_t col = line.thread; col < cols; col += Line::width) {
      const A h = (mr_up(from[col]) - middle) * factor;
      const A d = factor * (mr_up(up[col]) * mr_up(w[col]) - plain - h * along);
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
  const A *mean, *rstd;
  const T *dy;
  __device__ A operator()(int64_t row, int64_t col) const {
    const int64_t at = row * cols + col;
    return mr_up(dy[at]) * ((mr_up(x[at]) - mean[row]) * rstd[row]);
  }
};

template <typename T>
int layer_norm_backward(const mr_launch *l, int fresh, int64_t rows, int64_t cols, const void *x,
                        const void *w, const void *mean, const void *rstd, const void *dy, void *dx,
                        void *dw, void *db) {
  typedef typename mr_cuda_sum<T>::type A;
  const T *from = (const T *)x, *weights = (const T *)w, *up = (const T *)dy;
  const A *means = (const A *)mean, *rstds = (const A *)rstd;
  int error = 0;
  if (dw != NULL) {
    const weight_gradient<T> gradient = {cols, from, means, rstds, up};
    error = mr_cuda_column_sums<A>(l, rows, cols, gradient, (A *)dw);
  }
  if (error == 0 && db != NULL) {
    error = mr_cuda_column_sums<A>(l, rows, cols, mr_cuda_element<T>{cols, up}, (A *)db);
  }
  if (error != 0 || dx == NULL) return error; /* dx last, since it may be dy */
  const A share = 1 / (A)mr_cuda_max(1, cols);
  if (fresh) {
    return mr_cuda_lines(l, rows, cols,
                         backward<T, true>{cols, share, from, weights, means, rstds, up, (T *)dx});
  }
  return mr_cuda_lines(l, rows, cols,
                       backward<T, false>{cols, share, from, weights, means, rstds, up, (T *)dx});
}

template <typename T>
void rows(mr_kernels *k) {
  k->layer_norm = layer_norm<T>;
  k->add_layer_norm = add_layer_norm<T>;
  k->layer_norm_backward = layer_norm_backward<T>;
}

}  // namespace

MR_CUDA_ROWS(layer_norm)
