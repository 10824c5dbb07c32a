/* linear_gelu_linear: two projections with gelu between them, as one operation, so that gelu and
 * its derivative meet their arguments while these are in the cache. */
#include "grad/ops/linear.h"

#include <stddef.h>

#include "grad/ops/list.h"

enum { X, UP, UP_B, DOWN, DOWN_B };
enum { Z, H }; /* before and after gelu */

typedef struct extents {
  int64_t rows, in, hidden, out;
} extents;

static extents extents_of(const mr_call *call) {
  const mr_shape *up = &call->tensor[UP]->shape, *down = &call->tensor[DOWN]->shape;
  return (extents){mr_shape_rows(&call->tensor[X]->shape), up->extent[1], up->extent[0],
                   down->extent[0]};
}

static mr_status check_weight(const mr_call *call, int i, const char *before, int64_t in) {
  char text[128];
  const mr_shape *w = &call->tensor[i]->shape;
  MR_TRY(mr_call_check_axes(call, i, 2));
  if (w->extent[1] == in) return MR_OK;
  return mr_call_fail(call, "%s must have %lld columns, as many as %s, got %s",
                      call->op->argument[i].name, (long long)in, before, mr_shape_text(w, text));
}

static mr_status result(mr_call *call, mr_shape *shape, mr_dtype *dtype) {
  const mr_shape *x = &call->tensor[X]->shape;
  MR_TRY(mr_call_check_axes(call, X, -1));
  MR_TRY(check_weight(call, UP, "x", mr_shape_columns(x)));
  MR_TRY(check_weight(call, DOWN, "up has rows", call->tensor[UP]->shape.extent[0]));
  const extents e = extents_of(call);
  if (call->tensor[UP_B]) MR_TRY(mr_call_check_vector(call, UP_B, e.hidden));
  if (call->tensor[DOWN_B]) MR_TRY(mr_call_check_vector(call, DOWN_B, e.out));
  *shape = *x;
  shape->extent[x->axes - 1] = e.out;
  *dtype = call->dtype;
  return MR_OK;
}

static mr_status forward(mr_call *call) {
  const extents e = extents_of(call);
  const mr_shape hidden = {2, {e.rows, e.hidden}};
  MR_TRY(mr_call_save(call, Z, call->dtype, &hidden));
  MR_TRY(mr_call_save(call, H, call->dtype, &hidden));
  void *z = mr_tensor_data(call->saved[Z]), *h = mr_tensor_data(call->saved[H]);
  MR_TRY(MR_CALL_KERNEL(call, linear_gelu, e.rows, e.in, e.hidden, mr_call_data(call, X),
                        mr_call_data(call, UP), mr_call_data(call, UP_B), z, h));
  return MR_CALL_KERNEL(call, linear, e.rows, e.hidden, e.out, h, mr_call_data(call, DOWN),
                        mr_call_data(call, DOWN_B), mr_tensor_data(call->output));
}

static mr_status backward(mr_call *call) {
  const extents e = extents_of(call);
  const mr_shape hidden = {2, {e.rows, e.hidden}};
  mr_tensor *dz = NULL;
  mr_status status = MR_OK;
  MR_TRY(mr_tensor_new_raw(call->device, call->dtype, &hidden, &dz));
  MR_GOTO(MR_CALL_KERNEL(call, gelu_linear_backward, e.rows, e.hidden, e.out,
                         mr_tensor_data(call->saved[Z]), mr_tensor_data(call->saved[H]),
                         mr_call_data(call, DOWN), call->output_gradient, mr_tensor_data(dz),
                         call->gradient[DOWN], call->gradient[DOWN_B]));
  MR_GOTO(MR_CALL_KERNEL(call, linear_backward, call->fresh >> X & 1U, e.rows, e.in, e.hidden,
                         mr_call_data(call, X), mr_call_data(call, UP), mr_tensor_data(dz),
                         call->gradient[X], call->gradient[UP], call->gradient[UP_B]));
cleanup:
  mr_tensor_release(dz);
  return status;
}

static mr_status products(const mr_call *call, mr_product_visit visit, void *context) {
  const mr_tensor *x = call->tensor[X];
  const int64_t rows = mr_shape_rows(&x->shape);
  MR_TRY(mr_linear_products(call, UP, rows, x->requires_gradient, visit, context));
  return mr_linear_products(call, DOWN, rows, 1, visit, context);
}

const mr_op mr_op_linear_gelu_linear = {
    .name = "linear_gelu_linear",
    .text =
        "Two projections with gelu between them, gelu(x up^T + up_b) down^T + down_b, as one "
        "operation: the values of linear, gelu and linear, in less time.",
    .result_text = "[..., out]",
    .arguments = 5,
    .argument = {{.name = "x", .kind = MR_ARGUMENT_REAL, .text = "[..., in]"},
                 {.name = "up", .kind = MR_ARGUMENT_REAL, .text = "[hidden, in]"},
                 {.name = "up_b", .kind = MR_ARGUMENT_REAL, .optional = 1, .text = "[hidden]"},
                 {.name = "down", .kind = MR_ARGUMENT_REAL, .text = "[out, hidden]"},
                 {.name = "down_b", .kind = MR_ARGUMENT_REAL, .optional = 1, .text = "[out]"}},
    .writes = 1U << X,
    .sums = 1U << UP | 1U << UP_B | 1U << DOWN | 1U << DOWN_B,
    .result = result,
    .forward = forward,
    .backward = backward,
    .products = products,
};
