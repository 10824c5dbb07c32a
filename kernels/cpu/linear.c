/* y = x w^T + b, with gelu behind or before it. */
#include <stddef.h>

#include "kernels/cpu/columns.h"
#include "kernels/cpu/products.h"
#include "kernels/cpu/rows.h"

static int forward(const mr_launch *l, int64_t rows, int64_t in, int64_t out, const void *x,
                   const void *w, const void *b, void *y, void *gelu) {
  const mr_product product = {.transpose_b = 1,
                              .m = rows,
                              .n = out,
                              .k = in,
                              .alpha = 1,
                              .a = x,
                              .b = w,
                              .beta = b == NULL ? 0 : 1,
                              .c = y,
                              .bias = b,
                              .gelu = gelu};
  return MR_ROW(products)(l, 1, &product);
}

int MR_ROW(linear)(const mr_launch *l, int64_t rows, int64_t in, int64_t out, const void *x,
                   const void *w, const void *b, void *y) {
  return forward(l, rows, in, out, x, w, b, y, NULL);
}

int MR_ROW(linear_gelu)(const mr_launch *l, int64_t rows, int64_t in, int64_t out, const void *x,
                        const void *w, const void *b, void *z, void *y) {
  return forward(l, rows, in, out, x, w, b, z, y);
}

/* Where z is given, x = gelu(z) and dx is the gradient of z. */
static int backward(const mr_launch *l, int fresh, int64_t rows, int64_t in, int64_t out,
                    const void *x, const void *z, const void *w, const void *dy, void *dx, void *dw,
                    void *db) {
  mr_product products[2];
  int count = 0;
  if (dx != NULL) {
    products[count++] = (mr_product){.m = rows,
                                     .n = in,
                                     .k = out,
                                     .alpha = 1,
                                     .a = dy,
                                     .b = w,
                                     .beta = fresh ? 0 : 1,
                                     .c = dx,
                                     .gelu_input = z};
  }
  if (dw != NULL && in > 0) {
    products[count++] = (mr_product){.transpose_a = 1,
                                     .m = out,
                                     .n = in,
                                     .k = rows,
                                     .alpha = 1,
                                     .a = dy,
                                     .b = x,
                                     .beta = 1,
                                     .c = dw,
                                     .a_sums = db};
  } else if (db != NULL) {
    mr_column_sums(l, rows, out, dy, db);
  }
  return MR_ROW(products)(l, count, products);
}

int MR_ROW(linear_backward)(const mr_launch *l, int fresh, int64_t rows, int64_t in, int64_t out,
                            const void *x, const void *w, const void *dy, void *dx, void *dw,
                            void *db) {
  return backward(l, fresh, rows, in, out, x, NULL, w, dy, dx, dw, db);
}

int MR_ROW(gelu_linear_backward)(const mr_launch *l, int64_t rows, int64_t in, int64_t out,
                                 const void *z, const void *x, const void *w, const void *dy,
                                 void *dz, void *dw, void *db) {
  return backward(l, 1, rows, in, out, x, z, w, dy, dz, dw, db);
}
