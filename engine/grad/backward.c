/* Backward: list the calls that the root depends on, check them all, then run them from the last
 * recorded to the first. Nothing is changed before every check has passed. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "grad/apart.h"
#include "grad/node.h"
#include "grad/profile.h"

typedef struct node_list {
  mr_node **item;
  int64_t count, capacity;
} node_list;

enum { MAX_WATCHES = 8 };

typedef struct backward_run {
  mr_tape *tape;
  node_list nodes;
  mr_watch *watch[MAX_WATCHES]; /* the distinct ones met */
  int watches;
} backward_run;

static mr_node *node_of(const mr_tensor *tensor) { return (mr_node *)(void *)tensor->origin; }

static mr_status push(node_list *list, mr_node *node) {
  if (list->count == list->capacity) {
    int64_t capacity = list->capacity ? 2 * list->capacity : 256;
    void *block = NULL;
    MR_TRY(mr_memory_allocate_array(capacity, sizeof(mr_node *), &block));
    if (list->count) memcpy(block, list->item, (size_t)list->count * sizeof(mr_node *));
    mr_memory_release(list->item);
    list->item = block;
    list->capacity = capacity;
  }
  list->item[list->count++] = node;
  return MR_OK;
}

static mr_status list_input(void *context, mr_node *node, mr_tensor *input, int argument) {
  backward_run *run = context;
  (void)node;
  (void)argument;
  if (!input->origin) return MR_OK;
  mr_node *from = node_of(input);
  if (from->visited == run->tape->backwards) return MR_OK;
  from->visited = run->tape->backwards;
  return push(&run->nodes, from);
}

static int later_first(const void *a, const void *b) {
  int64_t x = (*(mr_node *const *)a)->number, y = (*(mr_node *const *)b)->number;
  return (x < y) - (x > y);
}

static mr_status list_nodes(backward_run *run, mr_tensor *root) {
  mr_node *last = node_of(root);
  last->visited = ++run->tape->backwards;
  MR_TRY(push(&run->nodes, last));
  for (int64_t i = 0; i < run->nodes.count; i++)
    MR_TRY(mr_node_each_input(run->nodes.item[i], list_input, run));
  qsort(run->nodes.item, (size_t)run->nodes.count, sizeof(mr_node *), later_first);
  return MR_OK;
}

mr_status mr_tape_each_node(mr_tape *tape, mr_tensor *root,
                            mr_status (*visit)(void *context, mr_node *node), void *context) {
  backward_run run = {.tape = tape};
  mr_status status = MR_OK;
  if (!root->origin)
    return mr_fail(MR_ERROR_ARGUMENT,
                   "this result depends on no parameter that requires a "
                   "gradient");
  MR_GOTO(list_nodes(&run, root));
  for (int64_t i = run.nodes.count - 1; i >= 0; i--) MR_GOTO(visit(context, run.nodes.item[i]));
cleanup:
  mr_memory_release(run.nodes.item);
  return status;
}

static mr_status note_watch(backward_run *run, mr_watch *watch) {
  for (int i = 0; i < run->watches; i++)
    if (run->watch[i] == watch) return MR_OK;
  if (run->watches == MAX_WATCHES)
    return mr_fail(MR_ERROR_ARGUMENT, "a backward reaches more than %d replicas", MAX_WATCHES);
  run->watch[run->watches++] = watch;
  return MR_OK;
}

static mr_status check_node(mr_node *node) {
  const mr_call *call = &node->call;
  if (node->consumed)
    return mr_fail(MR_ERROR_ARGUMENT,
                   "backward: the graph of this result was consumed by an earlier backward");
  for (int i = 0; i < call->op->arguments; i++) {
    const mr_tensor *input = call->tensor[i];
    if (!input) continue;
    MR_TRY(mr_tensor_readable(input, call->op->argument[i].name));
    if (input->storage->version != node->version[i])
      return mr_fail(MR_ERROR_ARGUMENT,
                     "backward: %s of %s was changed in place after the forward that used it",
                     call->op->argument[i].name, call->op->name);
  }
  if (call->output->storage->version != node->output_version)
    return mr_fail(MR_ERROR_ARGUMENT,
                   "backward: the result of %s was changed in place after the forward that made it",
                   call->op->name);
  return MR_OK;
}

static mr_status check_leaf(void *context, mr_node *node, mr_tensor *input, int argument) {
  backward_run *run = context;
  input->uses = 0;
  if (input->origin) return MR_OK;
  mr_watch *watch = input->watch;
  if (!watch || argument < 0) return MR_OK;
  MR_TRY(note_watch(run, watch));
  return watch->begin ? watch->begin(watch->owner, node->stamp[argument]) : MR_OK;
}

static mr_status count_use(void *context, mr_node *node, mr_tensor *input, int argument) {
  (void)context;
  (void)node;
  (void)argument;
  input->uses++;
  return MR_OK;
}

static mr_status check_all(backward_run *run) {
  for (int64_t i = 0; i < run->nodes.count; i++) MR_TRY(check_node(run->nodes.item[i]));
  for (int64_t i = 0; i < run->nodes.count; i++)
    MR_TRY(mr_node_each_input(run->nodes.item[i], check_leaf, run));
  for (int64_t i = 0; i < run->nodes.count; i++)
    MR_TRY(mr_node_each_input(run->nodes.item[i], count_use, run));
  return MR_OK;
}

static mr_status gradient_pointer(mr_call *call, mr_tensor *input, int in_wide, void **pointer) {
  mr_tensor *gradient = NULL;
  mr_dtype given = in_wide ? mr_dtype_wide(input->dtype) : input->dtype;
  *pointer = NULL;
  if (!input->requires_gradient) return MR_OK;
  MR_TRY(mr_tape_gradient(input, &gradient));
  return mr_apart_place(call, gradient, given, pointer);
}

static int stands_twice(const mr_call *call, int argument) {
  for (int i = 0; i < call->op->arguments; i++)
    if (i != argument && call->tensor[i] == call->tensor[argument]) return 1;
  return 0;
}

/* Whether this call is the first to give argument i a gradient, and nobody else looks after it:
 * gradients of leaves are kept, and add up from one backward to the next. */
static int is_first(const mr_call *call, int i) {
  const mr_tensor *input = call->tensor[i];
  return input && input->requires_gradient && input->origin && !input->gradient;
}

/* The first argument takes over the output's gradient, which ends with this call; a second one
 * gets a copy. */
static mr_status pass_gradient(mr_call *call, int i, int *passed) {
  mr_tensor *input = call->tensor[i], *output = call->output;
  if (!is_first(call, i) || input->count != output->count || stands_twice(call, i)) return MR_OK;
  call->done |= 1U << i;
  if (!output->keep && !*passed) {
    *passed = 1;
    return mr_tensor_view(output->gradient, 0, &input->shape, &input->gradient);
  }
  MR_TRY(mr_tensor_new_raw(call->device, input->dtype, &input->shape, &input->gradient));
  return MR_CALL_KERNEL(call, scale, input->count, 1.0, call->output_gradient,
                        mr_tensor_data(input->gradient));
}

/* Whether nobody reads the value any more: no other call of this backward, no view, nobody who
 * asked to keep it, and not the call that made it. */
static int is_last_reader(const mr_tensor *input) {
  return input->uses == 1 && !input->keep && input->storage->references == 1 &&
         !node_of(input)->call.op->reads_output;
}

/* Memory for a gradient that is wholly written: what holds a value that ends with this call, or
 * new memory. */
static mr_status place_gradient(const mr_call *call, int i) {
  mr_tensor *input = call->tensor[i], *output = call->output;
  if ((call->op->takes_over >> i & 1U) && !output->keep && !stands_twice(call, i))
    return mr_tensor_view(output->gradient, 0, &input->shape, &input->gradient);
  if ((call->op->overwrites >> i & 1U) && is_last_reader(input))
    return mr_tensor_view(input, 0, &input->shape, &input->gradient);
  return mr_tensor_new_raw(call->device, input->dtype, &input->shape, &input->gradient);
}

static mr_status prepare_gradient(mr_call *call, int i) {
  if ((call->op->writes >> i & 1U) && is_first(call, i)) {
    MR_TRY(place_gradient(call, i));
    call->fresh |= 1U << i;
  }
  return gradient_pointer(call, call->tensor[i], call->op->sums >> i & 1U, &call->gradient[i]);
}

static mr_status prepare_gradients(mr_call *call) {
  int passed = 0;
  for (int i = 0; i < call->op->arguments; i++)
    if (call->op->passes >> i & 1U) MR_TRY(pass_gradient(call, i, &passed));
  for (int i = 0; i < call->op->arguments; i++)
    if (call->tensor[i] && call->op->argument[i].kind == MR_ARGUMENT_REAL &&
        !(call->done >> i & 1U))
      MR_TRY(prepare_gradient(call, i));
  if (call->more_count == 0) return MR_OK;
  void *block = NULL;
  MR_TRY(mr_memory_allocate_array(call->more_count, sizeof(void *), &block));
  call->more_gradient = block;
  for (int64_t i = 0; i < call->more_count; i++)
    MR_TRY(gradient_pointer(call, call->more[i], 0, &call->more_gradient[i]));
  return MR_OK;
}

/* One tensor may stand for several arguments, and kernels are never handed one gradient twice:
 * every further place gets a backward of its own. */
static mr_status run_backward(mr_call *call) {
  void *further[MR_OP_MAX_ARGUMENTS] = {NULL};
  for (int i = 1; i < MR_OP_MAX_ARGUMENTS; i++)
    for (int j = 0; j < i && call->gradient[i]; j++) {
      if (call->gradient[i] != call->gradient[j]) continue;
      further[i] = call->gradient[i];
      call->gradient[i] = NULL;
    }
  MR_TRY(call->op->backward(call));
  for (int i = 1; i < MR_OP_MAX_ARGUMENTS; i++) {
    if (!further[i]) continue;
    memset(call->gradient, 0, sizeof call->gradient);
    for (int64_t k = 0; k < call->more_count; k++) call->more_gradient[k] = NULL;
    call->gradient[i] = further[i];
    MR_TRY(call->op->backward(call));
  }
  return MR_OK;
}

static mr_status make_backward(mr_call *call) {
  mr_status status = prepare_gradients(call);
  if (status == MR_OK) status = run_backward(call);
  return mr_apart_settle(call, status);
}

static mr_status timed_backward(mr_profile *profile, mr_call *call) {
  if (!profile) return make_backward(call);
  double began = mr_clock_seconds();
  mr_status status = make_backward(call);
  if (status == MR_OK) status = call->device->finish_sync(call->device);
  mr_profile_row *row = mr_profile_find(profile, call->op);
  if (row) row->backward += mr_clock_seconds() - began;
  return status;
}

static mr_status leaf_used(void *context, mr_node *node, mr_tensor *input, int argument) {
  (void)context;
  (void)node;
  (void)argument;
  if (input->origin || --input->uses > 0) return MR_OK;
  mr_watch *watch = input->watch;
  return watch && watch->arrived ? watch->arrived(watch->owner, input) : MR_OK;
}

static void end_output(mr_tensor *output, int is_root) {
  if (output->keep) return;
  mr_tensor_release(output->gradient);
  output->gradient = NULL;
  if (!is_root) mr_tensor_end(output);
}

static mr_status run_node(backward_run *run, mr_node *node, int is_root) {
  mr_call *call = &node->call;
  mr_tensor *output = call->output;
  mr_status status = MR_OK;
  if (output->gradient) {
    call->output_gradient = mr_tensor_data(output->gradient);
    MR_GOTO(timed_backward(run->tape->profile, call));
  }
  MR_GOTO(mr_node_each_input(node, leaf_used, run));
  for (int i = 0; i < run->watches; i++)
    if (run->watch[i]->progress) MR_GOTO(run->watch[i]->progress(run->watch[i]->owner));
cleanup:
  mr_memory_release(call->more_gradient);
  call->more_gradient = NULL;
  end_output(output, is_root);
  return status;
}

/* Consuming a node may release the last handle on the output of one further down the list, and
 * with it that node: every node is held by its output until its turn, so outputs are retained. */
static void hold_outputs(node_list *nodes) {
  for (int64_t i = 0; i < nodes->count; i++) mr_tensor_retain(nodes->item[i]->call.output);
}

/* A handle may outlive the value; the node need not. */
static void release_origin(mr_tensor *ended) {
  mr_origin *origin = ended->origin;
  if (!ended->ended || !origin) return;
  ended->origin = NULL;
  origin->release(origin);
}

static mr_status run_all(backward_run *run) {
  mr_status status = MR_OK;
  hold_outputs(&run->nodes);
  for (int64_t i = 0; i < run->nodes.count; i++) {
    mr_node *node = run->nodes.item[i];
    if (status == MR_OK) status = run_node(run, node, i == 0);
    mr_tensor *output = node->call.output;
    mr_node_consume(node);
    release_origin(output);
    mr_tensor_release(output);
  }
  for (int i = 0; i < run->watches; i++)
    if (status == MR_OK && run->watch[i]->finish)
      status = run->watch[i]->finish(run->watch[i]->owner);
  return status;
}

mr_status mr_tape_backward(mr_tape *tape, mr_tensor *root) {
  char text[128];
  backward_run run = {.tape = tape};
  mr_tensor *gradient = NULL;
  mr_status status = MR_OK;
  if (root->count != 1 || !mr_dtype_is_real(root->dtype))
    return mr_fail(MR_ERROR_ARGUMENT, "backward starts from one real number, got %s %s",
                   mr_dtype_name(root->dtype), mr_shape_text(&root->shape, text));
  if (!root->requires_gradient || !root->origin)
    return mr_fail(MR_ERROR_ARGUMENT,
                   "backward: this result depends on no parameter that requires a gradient");
  MR_GOTO(list_nodes(&run, root));
  MR_GOTO(check_all(&run));
  MR_GOTO(mr_tape_gradient(root, &gradient));
  MR_GOTO(MR_KERNEL(mr_tensor_device(root), root->dtype, fill, (int64_t)1, 1.0,
                    mr_tensor_data(gradient)));
  mr_tensor_retain(root);
  status = run_all(&run);
  mr_tensor_release(root);
cleanup:
  mr_memory_release(run.nodes.item);
  return status;
}
