/* y = x w^T + b */
#include <stddef.h>

#include "kernels/cpu/columns.h"
#include "kernels/cpu/products.h"
#include "kernels/cpu/rows.h"

int MR_ROW(linear)(const mr_launch *l, int64_t rows, int64_t in, int64_t out, const void *x,
                   const void *w, const void *b, void *y) {
  const mr_product product = {.transpose_b = 1,
                              .m = rows,
                              .n = out,
                              .k = in,
                              .alpha = 1,
                              .a = x,
                              .b = w,
                              .beta = b == NULL ? 0 : 1,
                              .c = y,
                              .bias = b};
  return MR_ROW(products)(l, 1, &product);
}

int MR_ROW(linear_backward)(const mr_launch *l, int fresh, int64_t rows, int64_t in, int64_t out,
                            const void *x, const void *w, const void *dy, void *dx, void *dw,
                            void *db) {
  mr_product products[2];
  int count = 0;
  if (dx != NULL) {
    products[count++] = (mr_product){
        .m = rows, .n = in, .k = out, .alpha = 1, .a = dy, .b = w, .beta = fresh ? 0 : 1, .c = dx};
  }
  if (dw != NULL) {
    products[count++] = (mr_product){.transpose_a = 1,
                                     .m = out,
                                     .n = in,
                                     .k = rows,
                                     .alpha = 1,
                                     .a = dy,
                                     .b = x,
                                     .beta = 1,
                                     .c = dw};
  }
  const int error = MR_ROW(products)(l, count, products);
  if (error == 0 && db != NULL) mr_column_sums(l, rows, out, dy, db);
  return error;
}
