/* embedding: the row of w at each id. */
#include "grad/ops/ids.h"
#include "grad/ops/list.h"

enum { W, IDS };

static mr_status result(mr_call *call, mr_shape *shape, mr_dtype *dtype) {
  const mr_shape *w = &call->tensor[W]->shape;
  MR_TRY(mr_call_check_axes(call, W, 2));
  MR_TRY(mr_call_check_axes(call, IDS, 1));
  MR_TRY(mr_check_ids(call, IDS, w->extent[0], MR_NO_EXCEPTION));
  *shape = (mr_shape){2, {call->tensor[IDS]->count, w->extent[1]}};
  *dtype = call->dtype;
  return MR_OK;
}

static mr_status forward(mr_call *call) {
  const mr_shape *w = &call->tensor[W]->shape;
  return MR_CALL_KERNEL(call, embedding, call->tensor[IDS]->count, w->extent[1],
                        mr_call_data(call, IDS), mr_call_data(call, W),
                        mr_tensor_data(call->output));
}

static mr_status backward(mr_call *call) {
  const mr_shape *w = &call->tensor[W]->shape;
  return MR_CALL_KERNEL(call, embedding_backward, call->tensor[IDS]->count, w->extent[1],
                        w->extent[0], mr_call_data(call, IDS), call->output_gradient,
                        call->gradient[W]);
}

const mr_op mr_op_embedding = {
    .name = "embedding",
    .text = "The row of w at each id; gradients of repeated ids add up.",
    .result_text = "[rows, columns]",
    .arguments = 2,
    .argument = {{.name = "w", .kind = MR_ARGUMENT_REAL, .text = "[vocabulary, columns]"},
                 {.name = "ids",
                  .kind = MR_ARGUMENT_I32,
                  .text = "[rows] ids from 0 to vocabulary - 1"}},
    .sums = 1U << W,
    .result = result,
    .forward = forward,
    .backward = backward,
};
