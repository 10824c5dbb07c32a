/* Sums of a whole array, in double for either real type.
 *
 * The array is cut into at most PIECES pieces by its length alone; the piece sums are added in
 * order. Within a piece the order is the one that the compiler chose for its vectors. */
#include <stddef.h>

#include "kernels/cpu/parallel.h"
#include "kernels/cpu/rows.h"

enum { PIECES = 256 };

/* Compiled once, so that the order is the same on one thread and on several. */
__attribute__((noinline)) static double plain(int64_t n, const real *x) {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < n; i++) sum += (double)x[i];
  return sum;
}

/* the sum of x[i] w[i] */
__attribute__((noinline)) static double weighted(int64_t n, const real *x, const real *w) {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < n; i++) sum += (double)x[i] * (double)w[i];
  return sum;
}

/* w may be NULL, for ones, or x itself. */
static double sum_pieces(const mr_launch *l, int64_t n, const real *x, const real *w) {
  const int64_t share = (n + PIECES - 1) / PIECES;
  const int64_t length = mr_max(MR_BLOCK, (share + MR_BLOCK - 1) / MR_BLOCK * MR_BLOCK);
  const int64_t pieces = (n + length - 1) / length;
  double sums[PIECES];
#pragma omp parallel for num_threads(mr_threads(l, n)) schedule(static)
  for (int64_t i = 0; i < pieces; i++) {
    const int64_t first = i * length, count = mr_min(length, n - first);
    sums[i] = w == NULL ? plain(count, x + first) : weighted(count, x + first, w + first);
  }
  double total = 0;
  for (int64_t i = 0; i < pieces; i++) total += sums[i];
  return total;
}

int MR_ROW(weighted_sum)(const mr_launch *l, int64_t n, const void *x, const void *w, void *y) {
  *(real *)y = (real)sum_pieces(l, n, x, w);
  return 0;
}

static void backward(int64_t n, real dy, const real *restrict w, real *restrict dx) {
  for (int64_t i = 0; i < n; i++) dx[i] += dy * w[i];
}

static void backward_plain(int64_t n, real dy, real *restrict dx) {
  for (int64_t i = 0; i < n; i++) dx[i] += dy;
}

int MR_ROW(weighted_sum_backward)(const mr_launch *l, int64_t n, const void *w, const void *dy,
                                  void *dx) {
  const real up = *(const real *)dy;
  MR_EACH_PIECE(l, n, first, n, MR_BLOCK, {
    const int64_t count = mr_min(MR_BLOCK, n - first);
    if (w != NULL) {
      backward(count, up, (const real *)w + first, (real *)dx + first);
    } else {
      backward_plain(count, up, (real *)dx + first);
    }
  });
  return 0;
}

int MR_ROW(sum_f64)(const mr_launch *l, int64_t n, const void *x, double *y) {
  *y = sum_pieces(l, n, x, NULL);
  return 0;
}

int MR_ROW(sum_squares)(const mr_launch *l, int64_t n, const void *x, double *y) {
  *y = sum_pieces(l, n, x, x);
  return 0;
}
