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

/* c[rows] = a[rows, depth] b[depth], or += if `add`; b and c are lines of LANES, b_stride and
 * c_stride apart. */
typedef struct line_product {
  int64_t depth;
  scalars a;
  const real *b;
  int64_t b_stride;
  real *c;
  int64_t c_stride;
  int add;
} line_product;

/* Works out the next `rows` <= TOGETHER rows, a constant where this is inlined, and steps on. */
__attribute__((always_inline)) static inline void next_rows(int rows, line_product *p) {
  vector sum[TOGETHER][VECTORS];
  for (int r = 0; r < rows; r++) {
    for (int v = 0; v < VECTORS; v++) {
      sum[r][v] = p->add ? ((const vector *)(p->c + r * p->c_stride))[v] : (vector){0};
    }
  }
  for (int64_t k = 0; k < p->depth; k++) {
    const vector *line = (const vector *)(p->b + k * p->b_stride);
    for (int r = 0; r < rows; r++) {
      const real scalar = p->a.x[r * p->a.row + k * p->a.column];
      for (int v = 0; v < VECTORS; v++) sum[r][v] += scalar * line[v];
    }
  }
  for (int r = 0; r < rows; r++) {
    for (int v = 0; v < VECTORS; v++) ((vector *)(p->c + r * p->c_stride))[v] = sum[r][v];
  }
  p->a.x += rows * p->a.row;
  p->c += rows * p->c_stride;
}

static inline void multiply_lines(int64_t rows, line_product p) {
  for (int64_t blocks = rows / TOGETHER; blocks > 0; blocks--) next_rows(TOGETHER, &p);
  if (TOGETHER > 4 && (rows & 4)) next_rows(4, &p);
  if (TOGETHER > 2 && (rows & 2)) next_rows(2, &p);
  if (rows & 1) next_rows(1, &p);
}

#endif
