/* attention: every row of q against the rows of k and v of its own sequence. */
#include "grad/ops/list.h"
#include "grad/ops/packing.h"
#include "grad/ops/shapes.h"

enum { Q, K, V, HEADS, LENGTHS, STARTS, CAUSAL };
enum { LSE, END_TO_END };

static mr_status result(mr_call *call, mr_shape *shape, mr_dtype *dtype) {
  int64_t heads = call->integer[HEADS];
  MR_TRY(mr_call_check_axes(call, Q, 2));
  MR_TRY(mr_call_check_same(call, K, Q));
  MR_TRY(mr_call_check_same(call, V, Q));
  MR_TRY(mr_result_as_first(call, shape, dtype));
  if (heads < 1 || shape->extent[1] % heads != 0)
    return mr_call_fail(call, "heads must divide the %lld columns of q, got %lld",
                        (long long)shape->extent[1], (long long)heads);
  return mr_packing_check(call, LENGTHS, STARTS, shape->extent[0]);
}

static mr_attention layout_of(const mr_call *call) {
  const mr_shape *q = &call->tensor[Q]->shape;
  const mr_tensor *starts = call->tensor[STARTS];
  return (mr_attention){.rows = q->extent[0],
                        .heads = call->integer[HEADS],
                        .head_size = q->extent[1] / call->integer[HEADS],
                        .sequences = call->tensor[LENGTHS]->count,
                        .starts = mr_tensor_data(starts ? starts : call->saved[END_TO_END]),
                        .lengths = mr_call_data(call, LENGTHS),
                        .q_stride = q->extent[1],
                        .k_stride = q->extent[1],
                        .v_stride = q->extent[1],
                        .causal = call->integer[CAUSAL] != 0};
}

static mr_status forward(mr_call *call) {
  mr_shape lse = {2, {call->tensor[Q]->shape.extent[0], call->integer[HEADS]}};
  MR_TRY(mr_call_save(call, LSE, mr_dtype_wide(call->dtype), &lse));
  if (!call->tensor[STARTS]) MR_TRY(mr_packing_save_starts(call, LENGTHS, END_TO_END));
  mr_attention layout = layout_of(call);
  return MR_CALL_KERNEL(call, attention, &layout, mr_call_data(call, Q), mr_call_data(call, K),
                        mr_call_data(call, V), mr_tensor_data(call->output),
                        mr_tensor_data(call->saved[LSE]));
}

static mr_status backward(mr_call *call) {
  mr_attention layout = layout_of(call);
  return MR_CALL_KERNEL(call, attention_backward, &layout, mr_call_data(call, Q),
                        mr_call_data(call, K), mr_call_data(call, V), mr_tensor_data(call->output),
                        mr_tensor_data(call->saved[LSE]), call->output_gradient, call->gradient[Q],
                        call->gradient[K], call->gradient[V]);
}

static mr_status products(const mr_call *call, mr_product_visit visit, void *context) {
  mr_attention layout = layout_of(call);
  return mr_packing_products(call, LENGTHS, &layout, visit, context);
}

const mr_op mr_op_attention = {
    .name = "attention",
    .text =
        "Scaled dot-product attention within packed sequences: no sequence sees another; rows "
        "that no sequence covers become 0.",
    .result_text = "[rows, columns]",
    .arguments = 7,
    .argument = {{.name = "q", .kind = MR_ARGUMENT_REAL, .text = "[rows, columns] queries"},
                 {.name = "k", .kind = MR_ARGUMENT_REAL, .text = "[rows, columns] keys"},
                 {.name = "v", .kind = MR_ARGUMENT_REAL, .text = "[rows, columns] values"},
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
