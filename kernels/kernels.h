/* The contract of the kernels: arithmetic on raw pointers. A kernel knows no tensor, rank or Lua.
 *
 * One mr_kernels per device and real dtype (float, double or bf16); one row per operation. `real`
 * below means that dtype, and arrays are of it unless a row says otherwise. `wide` means float for
 * bf16 and real for the others: in it every row computes and sums, and of it are all results that
 * stand for many values, namely
 *   - mean, rstd and lse of rows; losses (cross_entropy, squared_error) and their gradients; the
 *     weights, the result and its gradient of weighted_sum;
 *   - the gradients that are sums over rows: dw and db of linear, layer_norm, rms_norm and
 *     embedding;
 *   - all that an optimizer is given, but for the bf16 copy that it writes.
 * A row that is NULL is not supported there.
 *
 * Rules for every row
 *   - arrays are contiguous, row-major, aligned to their element; extents of 0 are allowed;
 *   - a forward row writes its output; a *_backward row ADDS to each gradient it is given (with
 *     `fresh`, it writes dx instead, which holds nothing yet) and skips those that are NULL; the
 * gradients of one call may be one and the same array where their inputs were;
 *   - outputs never overlap inputs, except where a row says so;
 *   - the result depends on values and shapes only, never on the number of threads;
 *   - 0 is success; anything else is the device's own error number.
 * Letters: n elements; rows x cols a matrix; h heads of d. */
#ifndef MR_KERNELS_H
#define MR_KERNELS_H

#include <stdint.h>

/* Where and how wide a kernel runs. `stream` is the device's (NULL on CPUs). */
typedef struct mr_launch {
  int threads;
  void *stream;
} mr_launch;

enum { MR_HEAD_SIZE_MAX = 512 };

/* Packed sequences: sequence s covers rows starts[s] .. starts[s] + lengths[s] - 1. Stretches
 * do not overlap; rows that no sequence covers get zeros and receive no gradient.
 * Head i of row r of q lies at q + r * q_stride + i * d; k, v alike. Score scale is 1/sqrt(d),
 * and d is at most MR_HEAD_SIZE_MAX (a larger one is ERANGE). */
typedef struct mr_attention {
  int64_t rows, heads, head_size, sequences;
  const int64_t *starts, *lengths;
  int64_t q_stride, k_stride, v_stride; /* in elements, between rows */
  int causal;
} mr_attention;

/* Where dropout draws: element (row, col) is kept by Philox at key (seed, layer) and counter
 * (update, ids[row], positions[row], col), so the mask depends on no rank, split or layout. */
typedef struct mr_dropout {
  double probability; /* of being dropped, in [0, 1) */
  uint64_t seed, layer, update;
  const int64_t *ids;       /* [rows] sequence ids */
  const int32_t *positions; /* [rows] positions within the sequence */
} mr_dropout;

/* y, p, g: see the rows. `step` counts from 1. Decoupled decay: p -= lr * decay * p. The gradient
 * is `factor` times g, rounded to the dtype: clipping costs no pass of its own. `copy` is NULL but
 * for bf16: there it gets the new p, rounded to nearest even. */
typedef struct mr_adamw {
  double lr, beta1, beta2, epsilon, decay, factor;
  int64_t step;
  void *copy;
} mr_adamw;

/* g' = factor g + decay p; v = momentum v + g'; p -= lr (nesterov ? g' + momentum v : v).
 * The first step (first != 0) starts v at g'. With momentum 0, v is NULL and p -= lr g'.
 * `copy` as above. */
typedef struct mr_sgd {
  double lr, momentum, decay, factor;
  int nesterov, first;
  void *copy;
} mr_sgd;

typedef struct mr_kernels {
  const char *name; /* "cpu-v3 f32": for run.json */

  /* plain arrays */
  int (*fill)(const mr_launch *l, int64_t n, double value, void *y);
  /* y += alpha x */
  int (*add_scaled)(const mr_launch *l, int64_t n, double alpha, const void *x, void *y);
  /* y = alpha x; y may be x */
  int (*scale)(const mr_launch *l, int64_t n, double alpha, const void *x, void *y);
  /* y[j][i] = alpha (x[0][i] + x[1][i] + ...), summed in this order, for each of `outputs` arrays
   * y[j]; arrays of y may be arrays of x */
  int (*sum_parts)(const mr_launch *l, int64_t n, double alpha, int parts, const void *const *x,
                   int outputs, void *const *y);
  int (*from_f32)(const mr_launch *l, int64_t n, const float *x, void *y);
  int (*from_f64)(const mr_launch *l, int64_t n, const double *x, void *y);
  /* of bf16 only, NULL for others: exact, but for NaNs, which stay one */
  int (*to_f32)(const mr_launch *l, int64_t n, const void *x, float *y);
  int (*to_f64)(const mr_launch *l, int64_t n, const void *x, double *y);

  /* a[rows, cols] with b[cols] repeated over the rows (rows = 1: equal shapes) */
  int (*add)(const mr_launch *l, int64_t rows, int64_t cols, const void *a, const void *b, void *y);
  int (*add_backward)(const mr_launch *l, int64_t rows, int64_t cols, const void *dy, void *da,
                      void *db);
  int (*multiply)(const mr_launch *l, int64_t rows, int64_t cols, const void *a, const void *b,
                  void *y);
  int (*multiply_backward)(const mr_launch *l, int64_t rows, int64_t cols, const void *a,
                           const void *b, const void *dy, void *da, void *db);

  /* c[m, n] = alpha op(a) op(b) + beta c; op transposes where asked. k is never split. */
  int (*gemm)(const mr_launch *l, int transpose_a, int transpose_b, int64_t m, int64_t n, int64_t k,
              double alpha, const void *a, const void *b, double beta, void *c);
  /* `count` of them, one behind the other in a, b and c; each is worked out by one thread */
  int (*gemms)(const mr_launch *l, int64_t count, int transpose_a, int transpose_b, int64_t m,
               int64_t n, int64_t k, double alpha, const void *a, const void *b, double beta,
               void *c);
  /* y[rows, out] = x[rows, in] w[out, in]^T + b[out]; b may be NULL */
  int (*linear)(const mr_launch *l, int64_t rows, int64_t in, int64_t out, const void *x,
                const void *w, const void *b, void *y);
  int (*linear_backward)(const mr_launch *l, int fresh, int64_t rows, int64_t in, int64_t out,
                         const void *x, const void *w, const void *dy, void *dx, void *dw,
                         void *db);

  /* z[rows, out] = x w^T + b, y = gelu(z) */
  int (*linear_gelu)(const mr_launch *l, int64_t rows, int64_t in, int64_t out, const void *x,
                     const void *w, const void *b, void *z, void *y);
  /* of a linear whose x[rows, in] is gelu(z); dz[rows, in] is written, what it held forgotten */
  int (*gelu_linear_backward)(const mr_launch *l, int64_t rows, int64_t in, int64_t out,
                              const void *z, const void *x, const void *w, const void *dy, void *dz,
                              void *dw, void *db);

  /* with fresh, dx may be dy */
  int (*relu)(const mr_launch *l, int64_t n, const void *x, void *y);
  int (*relu_backward)(const mr_launch *l, int fresh, int64_t n, const void *x, const void *dy,
                       void *dx);
  int (*gelu)(const mr_launch *l, int64_t n, const void *x, void *y); /* tanh form */
  int (*gelu_backward)(const mr_launch *l, int fresh, int64_t n, const void *x, const void *dy,
                       void *dx);
  int (*silu)(const mr_launch *l, int64_t n, const void *x, void *y);
  int (*silu_backward)(const mr_launch *l, int fresh, int64_t n, const void *x, const void *dy,
                       void *dx);

  /* over the last axis; mean, rstd: wide[rows], written by the forward; w, b: [cols], b may be
   * NULL; with fresh, dx may be dy */
  int (*layer_norm)(const mr_launch *l, int64_t rows, int64_t cols, double epsilon, const void *x,
                    const void *w, const void *b, void *y, void *mean, void *rstd);
  /* sum = a + b, then y, mean and rstd of it */
  int (*add_layer_norm)(const mr_launch *l, int64_t rows, int64_t cols, double epsilon,
                        const void *a, const void *b, const void *w, const void *bias, void *sum,
                        void *y, void *mean, void *rstd);
  int (*layer_norm_backward)(const mr_launch *l, int fresh, int64_t rows, int64_t cols,
                             const void *x, const void *w, const void *mean, const void *rstd,
                             const void *dy, void *dx, void *dw, void *db);
  int (*rms_norm)(const mr_launch *l, int64_t rows, int64_t cols, double epsilon, const void *x,
                  const void *w, void *y, void *rstd);
  int (*rms_norm_backward)(const mr_launch *l, int fresh, int64_t rows, int64_t cols, const void *x,
                           const void *w, const void *rstd, const void *dy, void *dx, void *dw);
  int (*softmax)(const mr_launch *l, int64_t rows, int64_t cols, const void *x, void *y);
  int (*softmax_backward)(const mr_launch *l, int64_t rows, int64_t cols, const void *y,
                          const void *dy, void *dx);

  /* out[rows, heads * head_size] contiguous; lse: wide[rows * heads], row-major by row, log of the
   * sum of exponentials, written by the forward. Gradients have the strides of q, k, v. */
  int (*attention)(const mr_launch *l, const mr_attention *a, const void *q, const void *k,
                   const void *v, void *out, void *lse);
  int (*attention_backward)(const mr_launch *l, const mr_attention *a, const void *q, const void *k,
                            const void *v, const void *out, const void *lse, const void *dout,
                            void *dq, void *dk, void *dv);

  /* with fresh, dx may be dy */
  int (*dropout)(const mr_launch *l, int64_t rows, int64_t cols, const mr_dropout *d, const void *x,
                 void *y);
  int (*dropout_backward)(const mr_launch *l, int fresh, int64_t rows, int64_t cols,
                          const mr_dropout *d, const void *dy, void *dx);

  /* y[rows, cols] = w[ids[row]]; ids were checked against w's rows by the caller */
  int (*embedding)(const mr_launch *l, int64_t rows, int64_t cols, const int32_t *ids,
                   const void *w, void *y);
  int (*embedding_backward)(const mr_launch *l, int64_t rows, int64_t cols, int64_t vocabulary,
                            const int32_t *ids, const void *dy, void *dw);

  /* loss[row] = lse[row] - x[row, target]; 0 where the target is negative (ignored); with fresh,
   * dx may be x */
  int (*cross_entropy)(const mr_launch *l, int64_t rows, int64_t cols, const void *x,
                       const int32_t *targets, void *loss, void *lse);
  int (*cross_entropy_backward)(const mr_launch *l, int fresh, int64_t rows, int64_t cols,
                                const void *x, const void *lse, const int32_t *targets,
                                const void *dloss, void *dx);

  /* (a - b)^2, each */
  int (*squared_error)(const mr_launch *l, int64_t n, const void *a, const void *b, void *y);
  int (*squared_error_backward)(const mr_launch *l, int64_t n, const void *a, const void *b,
                                const void *dy, void *da, void *db);

  /* y[1]; summed in a fixed order of blocks; w may be NULL (all ones) */
  int (*weighted_sum)(const mr_launch *l, int64_t n, const void *x, const void *w, void *y);
  int (*weighted_sum_backward)(const mr_launch *l, int64_t n, const void *w, const void *dy,
                               void *dx);
  int (*sum_f64)(const mr_launch *l, int64_t n, const void *x,
                 double *y); /* plain sum, in double */
  int (*sum_squares)(const mr_launch *l, int64_t n, const void *x, double *y); /* in double */

  /* the first of equals; NaN is passed over */
  int (*argmax)(const mr_launch *l, int64_t rows, int64_t cols, const void *x, int32_t *y);

  /* flat parameter ranges: p, g, and state, n elements each, updated in place */
  int (*sgd)(const mr_launch *l, int64_t n, const mr_sgd *o, const void *g, void *p,
             void *velocity);
  int (*adamw)(const mr_launch *l, int64_t n, const mr_adamw *o, const void *g, void *p, void *m,
               void *v);
} mr_kernels;

#endif
