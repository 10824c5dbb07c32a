/* Matrix products, several at a time. */
#ifndef MR_CPU_PRODUCTS_H
#define MR_CPU_PRODUCTS_H

#include "kernels/cpu/real.h"
#include "kernels/kernels.h"

/* c[m, n] = alpha op(a) op(b) + beta c; a, b, c contiguous. With a bias [n], each row of c is set
 * to it first (beta is to be 1). While a tile of c is in the cache, `gelu` [m, n] gets gelu(c), or
 * c is multiplied by the derivative of gelu at `gelu_input` [m, n]. `a_sums` [m] (a transposed)
 * gets the sums of a over k added, when a is about to be read. */
typedef struct mr_product {
  int transpose_a, transpose_b;
  int64_t m, n, k;
  real alpha;
  const real *a, *b;
  real beta;
  real *c;
  const real *bias;
  real *gelu;
  const real *gelu_input;
  real *a_sums;
} mr_product;

/* Works out `count` products whose c do not overlap. Extents above INT_MAX are EOVERFLOW. */
int MR_ROW(products)(const mr_launch *l, int count, const mr_product *products);

/* Works out one product, whole, on the thread that calls. */
void MR_ROW(whole_product)(const mr_product *product);

#endif
