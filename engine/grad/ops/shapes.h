/* Checks and results of shapes that several operations share. */
#ifndef MR_GRAD_OPS_SHAPES_H
#define MR_GRAD_OPS_SHAPES_H

#include "grad/op.h"

/* A `result` of records: shape and dtype of argument 0. */
mr_status mr_result_as_first(mr_call *call, mr_shape *shape, mr_dtype *dtype);

/* The same, for operations over the last axis: argument 0 must have at least one axis. */
mr_status mr_result_over_last(mr_call *call, mr_shape *shape, mr_dtype *dtype);

/* Checks that argument i has the shape of argument j; MR_ERROR_ARGUMENT with both. */
mr_status mr_call_check_same(const mr_call *call, int i, int j);

/* Checks that number i, added under a root, is finite and at least 0. */
mr_status mr_call_check_epsilon(const mr_call *call, int i);

/* Argument b repeated over the leading axes of argument a: a is rows x cols, b has cols elements.
 */
typedef struct mr_repeat {
  int64_t rows, cols;
} mr_repeat;

/* Checks that the shape of argument b is that of the last axes of argument a (all of them, some
 * or none); MR_ERROR_ARGUMENT with both. */
mr_status mr_call_check_repeat(const mr_call *call, int a, int b);

/* How b repeats, once checked. */
mr_repeat mr_call_repeat(const mr_call *call, int a, int b);

#endif
