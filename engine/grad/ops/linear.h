/* The products of a projection, for every operation that has one. */
#ifndef MR_GRAD_OPS_LINEAR_H
#define MR_GRAD_OPS_LINEAR_H

#include "grad/op.h"

/* Tells those of `rows` rows times argument w, [out, in], transposed, to `visit`: y; dx where
 * `with_dx`; dw where w requires a gradient. */
mr_status mr_linear_products(const mr_call *call, int w, int64_t rows, int with_dx,
                             mr_product_visit visit, void *context);

#endif
