#include "grad/tape.h"

#include <stddef.h>

#include "base/clock.h"
#include "base/memory.h"
#include "grad/node.h"
#include "grad/profile.h"

static int is_tensor_kind(mr_argument_kind kind) { return kind <= MR_ARGUMENT_I64; }

/* The first tensor says where the call runs; all others must lie there too. */
static mr_status check_input(mr_call *call, const mr_tensor *tensor, const char *name) {
  MR_TRY(mr_tensor_readable(tensor, name));
  mr_device *device = mr_tensor_device(tensor);
  if (!call->device) call->device = device;
  if (device == call->device) return MR_OK;
  return mr_call_fail(call, "%s lies on %s, the arguments before it on %s", name, device->name,
                      call->device->name);
}

static mr_status check_inputs(mr_call *call) {
  const mr_op *op = call->op;
  call->device = NULL;
  for (int i = 0; i < op->arguments; i++)
    if (is_tensor_kind(op->argument[i].kind) && call->tensor[i])
      MR_TRY(check_input(call, call->tensor[i], op->argument[i].name));
  for (int64_t i = 0; i < call->more_count; i++)
    MR_TRY(check_input(call, call->more[i], "an element of the list"));
  return MR_OK;
}

static int needs_gradient(const mr_call *call) {
  if (!call->op->backward) return 0;
  for (int i = 0; i < call->op->arguments; i++)
    if (call->op->argument[i].kind == MR_ARGUMENT_REAL && call->tensor[i] &&
        call->tensor[i]->requires_gradient)
      return 1;
  for (int64_t i = 0; i < call->more_count; i++)
    if (call->more[i]->requires_gradient) return 1;
  return 0;
}

static mr_status run_forward(mr_call *call) {
  mr_shape shape = {0};
  mr_dtype dtype = call->dtype;
  MR_TRY(check_inputs(call));
  MR_TRY(call->op->result(call, &shape, &dtype));
  if (!call->op->is_view)
    MR_TRY(mr_tensor_new_raw(call->device, dtype, &shape, &call->output));
  else
    call->extents = shape;
  return call->op->forward(call);
}

static void drop_saved(mr_call *call) {
  for (int i = 0; i < MR_OP_MAX_SAVED; i++) {
    mr_tensor_release(call->saved[i]);
    call->saved[i] = NULL;
  }
}

static void drop_output(mr_call *call) {
  mr_tensor_release(call->output);
  call->output = NULL;
}

static mr_status apply(mr_tape *tape, mr_call *call) {
  mr_status status = run_forward(call);
  mr_node *node = NULL;
  if (status == MR_OK && tape->paused == 0 && needs_gradient(call)) {
    status = mr_node_new(tape, call, &node);
    if (status == MR_OK) {
      call->output->origin = &node->origin;
      call->output->requires_gradient = 1;
      for (int i = 0; i < MR_OP_MAX_SAVED; i++) call->saved[i] = NULL;
      return MR_OK;
    }
  }
  drop_saved(call);
  if (status != MR_OK) drop_output(call);
  return status;
}

mr_status mr_tape_apply(mr_tape *tape, mr_call *call) {
  if (!tape->profile) return apply(tape, call);
  double began = mr_clock_seconds();
  mr_status status = apply(tape, call);
  if (status == MR_OK) {
    status = call->device->finish_sync(call->device);
    if (status != MR_OK) drop_output(call);
  }
  mr_profile_row *row = mr_profile_find(tape->profile, call->op);
  if (row) row->forward += mr_clock_seconds() - began;
  if (row) row->calls++;
  return status;
}

mr_status mr_tape_gradient(mr_tensor *leaf, mr_tensor **gradient) {
  if (!leaf->gradient)
    MR_TRY(mr_tensor_new(mr_tensor_device(leaf), leaf->dtype, &leaf->shape, &leaf->gradient));
  *gradient = leaf->gradient;
  return MR_OK;
}
