/* self_attention: attention whose queries, keys and values are the three thirds of each row. */
#include <stddef.h>

#include "grad/ops/list.h"
#include "grad/ops/packing.h"

enum { X, HEADS, LENGTHS, STARTS, CAUSAL };
enum { LSE, END_TO_END };

static mr_status result(mr_call *call, mr_shape *shape, mr_dtype *dtype) {
  char found[128];
  int64_t heads = call->integer[HEADS];
  const mr_shape *x = &call->tensor[X]->shape;
  MR_TRY(mr_call_check_axes(call, X, 2));
  if (x->extent[1] % 3 != 0)
    return mr_call_fail(call, "x must have columns in three equal parts, got %s",
                        mr_shape_text(x, found));
  if (heads < 1 || x->extent[1] / 3 % heads != 0)
    return mr_call_fail(call, "heads must divide the %lld columns of a third of x, got %lld",
                        (long long)x->extent[1] / 3, (long long)heads);
  *shape = (mr_shape){2, {x->extent[0], x->extent[1] / 3}};
  *dtype = call->dtype;
  return mr_packing_check(call, LENGTHS, STARTS, x->extent[0]);
}

static mr_attention layout_of(const mr_call *call) {
  const mr_shape *x = &call->tensor[X]->shape;
  const mr_tensor *starts = call->tensor[STARTS];
  return (mr_attention){.rows = x->extent[0],
                        .heads = call->integer[HEADS],
                        .head_size = x->extent[1] / 3 / call->integer[HEADS],
                        .sequences = call->tensor[LENGTHS]->count,
                        .starts = mr_tensor_data(starts ? starts : call->saved[END_TO_END]),
                        .lengths = mr_call_data(call, LENGTHS),
                        .q_stride = x->extent[1],
                        .k_stride = x->extent[1],
                        .v_stride = x->extent[1],
                        .causal = call->integer[CAUSAL] != 0};
}

/* Where part `i` (queries, keys, values) of the rows begins; NULL stays NULL. */
static void *part(const mr_call *call, void *rows, int i) {
  int64_t columns = call->tensor[X]->shape.extent[1] / 3;
  return rows ? (char *)rows + i * columns * mr_dtype_size(call->dtype) : NULL;
}

static mr_status forward(mr_call *call) {
  void *x = mr_call_data(call, X);
  mr_shape lse = {2, {call->tensor[X]->shape.extent[0], call->integer[HEADS]}};
  MR_TRY(mr_call_save(call, LSE, mr_dtype_wide(call->dtype), &lse));
  if (!call->tensor[STARTS]) MR_TRY(mr_packing_save_starts(call, LENGTHS, END_TO_END));
  mr_attention layout = layout_of(call);
  return MR_CALL_KERNEL(call, attention, &layout, part(call, x, 0), part(call, x, 1),
                        part(call, x, 2), mr_tensor_data(call->output),
                        mr_tensor_data(call->saved[LSE]));
}

static mr_status backward(mr_call *call) {
  void *x = mr_call_data(call, X), *dx = call->gradient[X];
  mr_attention layout = layout_of(call);
  return MR_CALL_KERNEL(call, attention_backward, &layout, part(call, x, 0), part(call, x, 1),
                        part(call, x, 2), mr_tensor_data(call->output),
                        mr_tensor_data(call->saved[LSE]), call->output_gradient, part(call, dx, 0),
                        part(call, dx, 1), part(call, dx, 2));
}

static mr_status products(const mr_call *call, mr_product_visit visit, void *context) {
  mr_attention layout = layout_of(call);
  return mr_packing_products(call, LENGTHS, &layout, visit, context);
}

const mr_op mr_op_self_attention = {
    .name = "self_attention",
    .text = "Attention whose queries, keys and values are the three thirds of each row of x.",
    .result_text = "[rows, columns]",
    .arguments = 5,
    .argument = {{.name = "x",
                  .kind = MR_ARGUMENT_REAL,
                  .text = "[rows, 3 columns]: queries, keys, values"},
                 {.name = "heads",
                  .kind = MR_ARGUMENT_INTEGER,
                  .named = 1,
                  .text = "number of heads; divides columns"},
                 {.name = "lengths",
                  .kind = MR_ARGUMENT_I64,
                  .named = 1,
                  .text = "[sequences] rows of each sequence"},
                 {.name = "starts",
                  .kind = MR_ARGUMENT_I64,
                  .optional = 1,
                  .named = 1,
                  .text = "[sequences] first row of each, from 0; without it they lie end to end"},
                 {.name = "causal",
                  .kind = MR_ARGUMENT_FLAG,
                  .optional = 1,
                  .named = 1,
                  .fallback = 1,
                  .text = "whether a row sees only itself and earlier rows"}},
    .reads_output = 1,
    .result = result,
    .forward = forward,
    .backward = backward,
    .products = products,
};
