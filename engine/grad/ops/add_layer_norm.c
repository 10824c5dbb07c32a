/* add_layer_norm: a residual and the norm behind it, in one pass over the rows. */
#include <stddef.h>

#include "grad/ops/layer_norm.h"
#include "grad/ops/list.h"

enum { A, B };

static mr_status forward(mr_call *add, mr_call *norm) {
  const mr_shape *sum = &add->output->shape;
  if (add->tensor[A]->count != add->tensor[B]->count) { /* the row takes no b that is repeated */
    MR_TRY(add->op->forward(add));
    return norm->op->forward(norm);
  }
  MR_TRY(mr_layer_norm_save(norm));
  return MR_CALL_KERNEL(norm, add_layer_norm, mr_shape_rows(sum), mr_shape_columns(sum),
                        norm->number[MR_LAYER_NORM_EPSILON], mr_call_data(add, A),
                        mr_call_data(add, B), mr_call_data(norm, MR_LAYER_NORM_W),
                        mr_call_data(norm, MR_LAYER_NORM_B), mr_tensor_data(add->output),
                        mr_tensor_data(norm->output),
                        mr_tensor_data(norm->saved[MR_LAYER_NORM_MEAN]),
                        mr_tensor_data(norm->saved[MR_LAYER_NORM_RSTD]));
}

static const mr_pair pair = {
    .first = &mr_op_add,
    .second = &mr_op_layer_norm,
    .first_text = "a + b, the shape of a",
    .forward = forward,
};

const mr_op mr_op_add_layer_norm = {
    .name = "add_layer_norm",
    .text =
        "The sum of two tensors, and its layer_norm, in one pass: the values of add and of "
        "layer_norm, in less time. Gives the norm first, the sum second.",
    .result_text = "the norm, the shape of a",
    .arguments = 5,
    .argument = {{.name = "a", .kind = MR_ARGUMENT_REAL, .text = "[..., columns]"},
                 {.name = "b",
                  .kind = MR_ARGUMENT_REAL,
                  .text = "the shape of a, or of its last axes; repeated over the others"},
                 {.name = "w", .kind = MR_ARGUMENT_REAL, .text = "[columns]"},
                 {.name = "bias", .kind = MR_ARGUMENT_REAL, .optional = 1, .text = "[columns]"},
                 {.name = "epsilon",
                  .kind = MR_ARGUMENT_NUMBER,
                  .optional = 1,
                  .named = 1,
                  .fallback = 1e-5,
                  .text = "added to the variance"}},
    .pair = &pair,
};
