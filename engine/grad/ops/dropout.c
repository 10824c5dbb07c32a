/* dropout: elements set to 0 at random, the others divided by the probability to stay. */
#include "grad/ops/list.h"
#include "grad/ops/shapes.h"

enum { X, PROBABILITY, SEED, LAYER, UPDATE, IDS, POSITIONS };

static mr_status result(mr_call *call, mr_shape *shape, mr_dtype *dtype) {
  double probability = call->number[PROBABILITY];
  MR_TRY(mr_result_over_last(call, shape, dtype));
  MR_TRY(mr_call_check_vector(call, IDS, mr_shape_rows(shape)));
  MR_TRY(mr_call_check_vector(call, POSITIONS, mr_shape_rows(shape)));
  if (probability >= 0 && probability < 1) return MR_OK;
  return mr_call_fail(call, "probability must be at least 0 and below 1, got %g", probability);
}

/* Backward draws the same mask anew, since the draw depends on these values alone. */
static mr_dropout draw_of(const mr_call *call) {
  return (mr_dropout){.probability = call->number[PROBABILITY],
                      .seed = (uint64_t)call->integer[SEED],
                      .layer = (uint64_t)call->integer[LAYER],
                      .update = (uint64_t)call->integer[UPDATE],
                      .ids = mr_call_data(call, IDS),
                      .positions = mr_call_data(call, POSITIONS)};
}

static mr_status forward(mr_call *call) {
  const mr_shape *x = &call->tensor[X]->shape;
  mr_dropout draw = draw_of(call);
  return MR_CALL_KERNEL(call, dropout, mr_shape_rows(x), mr_shape_columns(x), &draw,
                        mr_call_data(call, X), mr_tensor_data(call->output));
}

static mr_status backward(mr_call *call) {
  const mr_shape *x = &call->tensor[X]->shape;
  mr_dropout draw = draw_of(call);
  return MR_CALL_KERNEL(call, dropout_backward, call->fresh >> X & 1U, mr_shape_rows(x),
                        mr_shape_columns(x), &draw, call->output_gradient, call->gradient[X]);
}

const mr_op mr_op_dropout = {
    .name = "dropout",
    .text =
        "Sets elements to 0 at random and divides the others by 1 - probability. The draw "
        "depends on seed, layer, update, sequence id, position and column only.",
    .result_text = "the shape of x",
    .arguments = 7,
    .argument = {{.name = "x", .kind = MR_ARGUMENT_REAL, .text = "[..., columns]"},
                 {.name = "probability",
                  .kind = MR_ARGUMENT_NUMBER,
                  .named = 1,
                  .text = "of an element to become 0; at least 0, below 1"},
                 {.name = "seed", .kind = MR_ARGUMENT_INTEGER, .named = 1, .text = "of the run"},
                 {.name = "layer",
                  .kind = MR_ARGUMENT_INTEGER,
                  .named = 1,
                  .text = "number of this dropout within the model"},
                 {.name = "update",
                  .kind = MR_ARGUMENT_INTEGER,
                  .named = 1,
                  .text = "number of the update"},
                 {.name = "ids",
                  .kind = MR_ARGUMENT_I64,
                  .named = 1,
                  .text = "[rows] sequence of each row"},
                 {.name = "positions",
                  .kind = MR_ARGUMENT_I32,
                  .named = 1,
                  .text = "[rows] position of each row within its sequence"}},
    .writes = 1U << X,
    .takes_over = 1U << X,
    .result = result,
    .forward = forward,
    .backward = backward,
};
