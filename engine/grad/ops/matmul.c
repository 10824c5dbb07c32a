/* matmul: the matrix product a b. */
#include "grad/ops/list.h"

enum { A, B };

static mr_status result(mr_call *call, mr_shape *shape, mr_dtype *dtype) {
  char a_text[128], b_text[128];
  const mr_shape *a = &call->tensor[A]->shape, *b = &call->tensor[B]->shape;
  MR_TRY(mr_call_check_axes(call, A, 2));
  MR_TRY(mr_call_check_axes(call, B, 2));
  if (a->extent[1] != b->extent[0])
    return mr_call_fail(call, "a is %s and b is %s: the last extent of a must be the first of b",
                        mr_shape_text(a, a_text), mr_shape_text(b, b_text));
  *shape = (mr_shape){2, {a->extent[0], b->extent[1]}};
  *dtype = call->dtype;
  return MR_OK;
}

static mr_status forward(mr_call *call) {
  const mr_shape *a = &call->tensor[A]->shape, *b = &call->tensor[B]->shape;
  return MR_CALL_KERNEL(call, gemm, 0, 0, a->extent[0], b->extent[1], a->extent[1], 1.0,
                        mr_call_data(call, A), mr_call_data(call, B), 0.0,
                        mr_tensor_data(call->output));
}

/* da += dy b^T, db += a^T dy */
static mr_status backward(mr_call *call) {
  int64_t m = call->tensor[A]->shape.extent[0], k = call->tensor[A]->shape.extent[1];
  int64_t n = call->tensor[B]->shape.extent[1];
  if (call->gradient[A])
    MR_TRY(MR_CALL_KERNEL(call, gemm, 0, 1, m, k, n, 1.0, call->output_gradient,
                          mr_call_data(call, B), 1.0, call->gradient[A]));
  if (call->gradient[B])
    MR_TRY(MR_CALL_KERNEL(call, gemm, 1, 0, k, n, m, 1.0, mr_call_data(call, A),
                          call->output_gradient, 1.0, call->gradient[B]));
  return MR_OK;
}

static mr_status products(const mr_call *call, mr_product_visit visit, void *context) {
  int64_t m = call->tensor[A]->shape.extent[0], k = call->tensor[A]->shape.extent[1];
  int64_t n = call->tensor[B]->shape.extent[1];
  mr_product_shape y = {1, 0, 0, 0, m, n, k, 0}, da = {1, 0, 0, 1, m, k, n, 0},
                   db = {1, 0, 1, 0, k, n, m, 0};
  MR_TRY(visit(context, &y));
  if (call->tensor[A]->requires_gradient) MR_TRY(visit(context, &da));
  return call->tensor[B]->requires_gradient ? visit(context, &db) : MR_OK;
}

const mr_op mr_op_matmul = {
    .name = "matmul",
    .text = "The product of two matrices.",
    .result_text = "[m, n]",
    .arguments = 2,
    .argument = {{.name = "a", .kind = MR_ARGUMENT_REAL, .text = "[m, k]"},
                 {.name = "b", .kind = MR_ARGUMENT_REAL, .text = "[k, n]"}},
    .result = result,
    .forward = forward,
    .backward = backward,
    .products = products,
};
