/* Small products whose right side is LANES wide, held in registers throughout, and the turning of
 * rows into lines.
 *
 * A line of LANES reals is 64 bytes, in as many vectors as the instruction set needs for it. */
#ifndef MR_CPU_LANES_H
#define MR_CPU_LANES_H

#include <stdint.h>

#include "kernels/cpu/real.h"
#include "kernels/cpu/vector.h"

#if MR_VECTOR_BYTES == 64
#define MR_TOGETHER 8
#define MR_ABREAST 2
#elif MR_VECTOR_BYTES == 32
#define MR_TOGETHER 4
#define MR_ABREAST 1
#else
#define MR_TOGETHER 2
#define MR_ABREAST 1
#endif

/* TOGETHER * ABREAST * VECTORS sums are in registers. */
enum {
  LANES = 64 / sizeof(real),
  VECTORS = 64 / MR_VECTOR_BYTES, /* in a line */
  TOGETHER = MR_TOGETHER,         /* rows worked out together */
  ABREAST = MR_ABREAST,           /* lines of a row worked out together, where it has so many */
  WIDTH = MR_ABREAST * LANES,     /* reals of these */
  DEPTH = 64                      /* the most that products of rows are summed over */
};

/* A matrix of scalars: row r, column k at x[r * row + k * column]. */
typedef struct scalars {
  const real *x;
  int64_t row, column;
} scalars;

/* c[rows] = a[rows, depth] b[depth], or += if `add`; b and c are lines of LANES (or rows of reals,
 * see multiply_rows), b_stride and c_stride apart. */
typedef struct line_product {
  int64_t depth;
  scalars a;
  const real *b;
  int64_t b_stride;
  real *c;
  int64_t c_stride;
  int add;
} line_product;

/* Works out the next `rows` <= TOGETHER rows of `lines` <= ABREAST adjacent lines, both constants
 * where this is inlined, and steps on. */
__attribute__((always_inline)) static inline void next_rows(int rows, int lines, line_product *p) {
  vector sum[TOGETHER][ABREAST * VECTORS];
  for (int r = 0; r < rows; r++) {
    for (int v = 0; v < lines * VECTORS; v++) {
      sum[r][v] = p->add ? ((const vector *)(p->c + r * p->c_stride))[v] : (vector){0};
    }
  }
  for (int64_t k = 0; k < p->depth; k++) {
    const vector *line = (const vector *)(p->b + k * p->b_stride);
    for (int r = 0; r < rows; r++) {
      const real scalar = p->a.x[r * p->a.row + k * p->a.column];
      for (int v = 0; v < lines * VECTORS; v++) sum[r][v] += scalar * line[v];
    }
  }
  for (int r = 0; r < rows; r++) {
    for (int v = 0; v < lines * VECTORS; v++) ((vector *)(p->c + r * p->c_stride))[v] = sum[r][v];
  }
  p->a.x += rows * p->a.row;
  p->c += rows * p->c_stride;
}

__attribute__((always_inline)) static inline void all_rows(int64_t rows, int lines,
                                                           line_product p) {
  for (int64_t blocks = rows / TOGETHER; blocks > 0; blocks--) next_rows(TOGETHER, lines, &p);
  if (TOGETHER > 4 && (rows & 4)) next_rows(4, lines, &p);
  if (TOGETHER > 2 && (rows & 2)) next_rows(2, lines, &p);
  if (rows & 1) next_rows(1, lines, &p);
}

static void multiply_lines(int64_t rows, line_product p) { all_rows(rows, 1, p); }

static void multiply_lines_abreast(int64_t rows, line_product p) { all_rows(rows, ABREAST, p); }

/* The product for `size` < LANES reals of each row, through copies that are filled up to lines. */
static void multiply_rest(int64_t rows, int64_t size, line_product p) {
  real from[DEPTH][LANES] = {{0}}, to[DEPTH][LANES];
  for (int64_t k = 0; k < p.depth; k++) {
    for (int64_t i = 0; i < size; i++) from[k][i] = p.b[k * p.b_stride + i];
  }
  multiply_lines(rows, (line_product){p.depth, p.a, from[0], LANES, to[0], LANES, .add = 0});
  for (int64_t r = 0; r < rows; r++) {
    real *c = p.c + r * p.c_stride;
    /* The analyzer does not see that multiply_lines wrote every line.
     * NOLINTNEXTLINE(clang-analyzer-core.UndefinedBinaryOperatorResult) */
    for (int64_t i = 0; i < size; i++) c[i] = p.add ? c[i] + to[r][i] : to[r][i];
  }
}

/* The same product where b and c are rows of `size` reals; rows and depth are at most DEPTH. */
static inline void multiply_rows(int64_t rows, int64_t size, line_product p) {
  int64_t left = size;
  for (; left >= WIDTH; left -= WIDTH) {
    multiply_lines_abreast(rows, p);
    p.b += WIDTH;
    p.c += WIDTH;
  }
  for (; left >= LANES; left -= LANES) {
    multiply_lines(rows, p);
    p.b += LANES;
    p.c += LANES;
  }
  if (left > 0) multiply_rest(rows, left, p);
}

/* --- turning ------------------------------------------------------------------------------------
 */

typedef real quarter __attribute__((vector_size(16), aligned(sizeof(real)), may_alias));

enum { QUARTER = 16 / sizeof(real) }; /* a line has four */

/* line[c][i] = factor x[i * stride + c] for i, c < QUARTER; lines lie LANES apart */
static inline void turn_block(real factor, const real *x, int64_t stride, real *line) {
#if MR_REAL_BITS == 64
  const quarter a = *(const quarter *)x * factor, b = *(const quarter *)(x + stride) * factor;
  *(quarter *)line = __builtin_shufflevector(a, b, 0, 2);
  *(quarter *)(line + LANES) = __builtin_shufflevector(a, b, 1, 3);
#else
  const quarter a = *(const quarter *)x * factor, b = *(const quarter *)(x + stride) * factor,
                c = *(const quarter *)(x + 2 * stride) * factor,
                d = *(const quarter *)(x + 3 * stride) * factor;
  const quarter ab = __builtin_shufflevector(a, b, 0, 4, 1, 5),
                cd = __builtin_shufflevector(c, d, 0, 4, 1, 5),
                ab_high = __builtin_shufflevector(a, b, 2, 6, 3, 7),
                cd_high = __builtin_shufflevector(c, d, 2, 6, 3, 7);
  *(quarter *)line = __builtin_shufflevector(ab, cd, 0, 1, 4, 5);
  *(quarter *)(line + LANES) = __builtin_shufflevector(ab, cd, 2, 3, 6, 7);
  *(quarter *)(line + (int64_t)2 * LANES) = __builtin_shufflevector(ab_high, cd_high, 0, 1, 4, 5);
  *(quarter *)(line + (int64_t)3 * LANES) = __builtin_shufflevector(ab_high, cd_high, 2, 3, 6, 7);
#endif
}

/* line[c][i] = factor x[i * stride + c] for i < count <= LANES and c < size, 0 for the other
 * lanes */
static inline void to_lines(int64_t count, int64_t size, real factor, const real *restrict x,
                            int64_t stride, real (*restrict line)[LANES]) {
  int64_t c = 0;
  if (count == LANES) {
    for (; c + QUARTER <= size; c += QUARTER) {
      for (int64_t i = 0; i < LANES; i += QUARTER) {
        turn_block(factor, x + i * stride + c, stride, &line[c][i]);
      }
    }
  }
  for (; c < size; c++) {
    for (int64_t i = 0; i < count; i++) line[c][i] = factor * x[i * stride + c];
    for (int64_t i = count; i < LANES; i++) line[c][i] = 0;
  }
}

#endif
