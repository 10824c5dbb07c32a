/* linear: y = x w^T + b over the last axis of x. */
#include "grad/ops/linear.h"

#include "grad/ops/list.h"

enum { X, W, B };

static mr_status result(mr_call *call, mr_shape *shape, mr_dtype *dtype) {
  char x_text[128], w_text[128];
  const mr_shape *x = &call->tensor[X]->shape, *w = &call->tensor[W]->shape;
  MR_TRY(mr_call_check_axes(call, X, -1));
  MR_TRY(mr_call_check_axes(call, W, 2));
  if (mr_shape_columns(x) != w->extent[1])
    return mr_call_fail(call, "x is %s and w is %s: their last extents must be equal",
                        mr_shape_text(x, x_text), mr_shape_text(w, w_text));
  if (call->tensor[B]) MR_TRY(mr_call_check_vector(call, B, w->extent[0]));
  *shape = *x;
  shape->extent[x->axes - 1] = w->extent[0];
  *dtype = call->dtype;
  return MR_OK;
}

static mr_status forward(mr_call *call) {
  const mr_shape *w = &call->tensor[W]->shape;
  return MR_CALL_KERNEL(call, linear, mr_shape_rows(&call->tensor[X]->shape), w->extent[1],
                        w->extent[0], mr_call_data(call, X), mr_call_data(call, W),
                        mr_call_data(call, B), mr_tensor_data(call->output));
}

static mr_status backward(mr_call *call) {
  const mr_shape *w = &call->tensor[W]->shape;
  return MR_CALL_KERNEL(call, linear_backward, call->fresh >> X & 1U,
                        mr_shape_rows(&call->tensor[X]->shape), w->extent[1], w->extent[0],
                        mr_call_data(call, X), mr_call_data(call, W), call->output_gradient,
                        call->gradient[X], call->gradient[W], call->gradient[B]);
}

mr_status mr_linear_products(const mr_call *call, int w, int64_t rows, int with_dx,
                             mr_product_visit visit, void *context) {
  const mr_shape *shape = &call->tensor[w]->shape;
  int64_t out = shape->extent[0], in = shape->extent[1];
  mr_product_shape y = {1, 0, 0, 1, rows, out, in, 0}, dx = {1, 0, 0, 0, rows, in, out, 0},
                   dw = {1, 0, 1, 0, out, in, rows, 1};
  MR_TRY(visit(context, &y));
  if (with_dx) MR_TRY(visit(context, &dx));
  return call->tensor[w]->requires_gradient ? visit(context, &dw) : MR_OK;
}

static mr_status products(const mr_call *call, mr_product_visit visit, void *context) {
  const mr_tensor *x = call->tensor[X];
  return mr_linear_products(call, W, mr_shape_rows(&x->shape), x->requires_gradient, visit,
                            context);
}

const mr_op mr_op_linear = {
    .name = "linear",
    .text = "Multiplies the last axis by a matrix and adds a bias: x w^T + b.",
    .result_text = "[..., out]",
    .arguments = 3,
    .argument = {{.name = "x", .kind = MR_ARGUMENT_REAL, .text = "[..., in]"},
                 {.name = "w", .kind = MR_ARGUMENT_REAL, .text = "[out, in]"},
                 {.name = "b", .kind = MR_ARGUMENT_REAL, .optional = 1, .text = "[out]"}},
    .writes = 1U << X,
    .sums = 1U << W | 1U << B,
    .result = result,
    .forward = forward,
    .backward = backward,
    .products = products,
};
