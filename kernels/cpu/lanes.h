/* Small products whose right side is LANES wide, held in registers throughout.
 *
 * A line of LANES reals is 64 bytes, in as many vectors as the instruction set needs for it. */
#ifndef MR_CPU_LANES_H
#define MR_CPU_LANES_H

#include <stdint.h>

#include "kernels/cpu/real.h"
#include "kernels/cpu/vector.h"

#if MR_VECTOR_BYTES == 64
#define MR_TOGETHER 8
#elif MR_VECTOR_BYTES == 32
#define MR_TOGETHER 4
#else
#define MR_TOGETHER 2
#endif

enum {
  LANES = 64 / sizeof(real),
  VECTORS = 64 / MR_VECTOR_BYTES, /* in a line */
  TOGETHER = MR_TOGETHER /* rows worked out together: TOGETHER * VECTORS sums in registers */
};

/* A matrix of scalars: row r, column k at x[r * row + k * column]. */
typedef struct scalars {
  const real *x;
  int64_t row, column;
} scalars;

/* As multiply_lines for `rows` <= TOGETHER, a constant where this is inlined. */
static inline void multiply_few(int rows, int64_t depth, scalars a, const real *b, int64_t b_stride,
                                real *c, int64_t c_stride, int add) {
  vector sum[TOGETHER][VECTORS];
  for (int r = 0; r < rows; r++) {
    for (int v = 0; v < VECTORS; v++) {
      sum[r][v] = add ? ((const vector *)(c + r * c_stride))[v] : (vector){0};
    }
  }
  for (int64_t k = 0; k < depth; k++) {
    const vector *line = (const vector *)(b + k * b_stride);
    for (int r = 0; r < rows; r++) {
      const real scalar = a.x[r * a.row + k * a.column];
      for (int v = 0; v < VECTORS; v++) sum[r][v] += scalar * line[v];
    }
  }
  for (int r = 0; r < rows; r++) {
    for (int v = 0; v < VECTORS; v++) ((vector *)(c + r * c_stride))[v] = sum[r][v];
  }
}

/* c[rows] = a[rows, depth] b[depth], or += if `add`; b and c are lines of LANES. */
static inline void multiply_lines(int64_t rows, int64_t depth, scalars a, const real *b,
                                  int64_t b_stride, real *c, int64_t c_stride, int add) {
  int64_t r = 0;
  for (; r + TOGETHER <= rows; r += TOGETHER) {
    multiply_few(TOGETHER, depth, a, b, b_stride, c + r * c_stride, c_stride, add);
    a.x += TOGETHER * a.row;
  }
  for (; r < rows; r++) {
    multiply_few(1, depth, a, b, b_stride, c + r * c_stride, c_stride, add);
    a.x += a.row;
  }
}

#endif
