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

/* Checks the arguments and makes the output. */
static mr_status prepare(mr_call *call) {
  mr_shape shape = {0};
  mr_dtype dtype = call->dtype;
  MR_TRY(check_inputs(call));
  MR_TRY(call->op->result(call, &shape, &dtype));
  if (!call->op->is_view)
    MR_TRY(mr_tensor_new_raw(call->device, dtype, &shape, &call->output));
  else
    call->extents = shape;
  return MR_OK;
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

/* Records a call whose output is written; what it saved goes to the node or ends. */
static mr_status record(mr_tape *tape, mr_call *call) {
  mr_status status = MR_OK;
  mr_node *node = NULL;
  if (tape->paused == 0 && needs_gradient(call)) {
    status = mr_node_new(tape, call, &node);
    if (status == MR_OK) {
      call->output->origin = &node->origin;
      call->output->requires_gradient = 1;
      for (int i = 0; i < MR_OP_MAX_SAVED; i++) call->saved[i] = NULL;
      return MR_OK;
    }
  }
  drop_saved(call);
  return status;
}

static mr_status apply(mr_tape *tape, mr_call *call) {
  mr_status status = prepare(call);
  if (status == MR_OK) status = call->op->forward(call);
  if (status == MR_OK) status = record(tape, call);
  if (status == MR_OK) return MR_OK;
  drop_saved(call);
  drop_output(call);
  return status;
}

static void copy_argument(const mr_call *from, int i, mr_call *to, int j) {
  to->tensor[j] = from->tensor[i];
  to->number[j] = from->number[i];
  to->integer[j] = from->integer[i];
}

static mr_status apply_pair(mr_tape *tape, mr_call *call, mr_call *first) {
  const mr_pair *pair = call->op->pair;
  mr_call second = {.op = pair->second, .dtype = call->dtype};
  const int before = pair->first->arguments;
  mr_status status = MR_OK;
  *first = (mr_call){.op = pair->first, .dtype = call->dtype};
  for (int i = 0; i < before; i++) copy_argument(call, i, first, i);
  for (int i = before; i < call->op->arguments; i++)
    copy_argument(call, i, &second, i - before + 1);
  MR_GOTO(prepare(first));
  call->device = first->device;
  second.tensor[0] = first->output;
  MR_GOTO(prepare(&second));
  MR_GOTO(pair->forward(first, &second));
  MR_GOTO(record(tape, first));
  MR_GOTO(record(tape, &second));
  call->output = second.output;
  return MR_OK;
cleanup:
  drop_saved(&second);
  drop_output(&second);
  drop_output(first);
  return status;
}

/* Waits for a call that began at `began`, and notes how long it took. */
static mr_status note_time(mr_profile *profile, const mr_call *call, double began) {
  MR_TRY(call->device->finish_sync(call->device));
  mr_profile_row *row = mr_profile_find(profile, call->op);
  if (row) row->forward += mr_clock_seconds() - began;
  if (row) row->calls++;
  return MR_OK;
}

mr_status mr_tape_apply(mr_tape *tape, mr_call *call) {
  if (!tape->profile) return apply(tape, call);
  double began = mr_clock_seconds();
  MR_TRY(apply(tape, call));
  mr_status status = note_time(tape->profile, call, began);
  if (status != MR_OK) drop_output(call);
  return status;
}

mr_status mr_tape_apply_pair(mr_tape *tape, mr_call *call, mr_tensor **first) {
  mr_call made;
  double began = tape->profile ? mr_clock_seconds() : 0;
  mr_status status = apply_pair(tape, call, &made);
  *first = made.output;
  if (!tape->profile || status != MR_OK) return status;
  status = note_time(tape->profile, call, began);
  if (status == MR_OK) return MR_OK;
  drop_output(call);
  drop_output(&made);
  *first = NULL;
  return status;
}

mr_status mr_tape_gradient(mr_tensor *tensor, mr_tensor **gradient) {
  mr_dtype dtype = tensor->origin ? tensor->dtype : mr_dtype_wide(tensor->dtype);
  if (!tensor->gradient)
    MR_TRY(mr_tensor_new(mr_tensor_device(tensor), dtype, &tensor->shape, &tensor->gradient));
  *gradient = tensor->gradient;
  return MR_OK;
}
