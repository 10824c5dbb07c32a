#include "grad/node.h"

#include <stddef.h>

#include "base/memory.h"

/* Releasing a node may release the next one, and so on down a long chain; the chain is worked
 * off as a list so that its length never becomes depth of the stack. */
static _Thread_local mr_node *released;
static _Thread_local int releasing;

static void release_node(mr_origin *origin) {
  mr_node *node = (mr_node *)(void *)origin;
  node->next_released = released;
  released = node;
  if (releasing) return;
  releasing = 1;
  while (released) {
    mr_node *next = released;
    released = next->next_released;
    mr_node_consume(next);
    mr_memory_release(next);
  }
  releasing = 0;
}

static int64_t stamp_of(const mr_tensor *leaf) {
  return leaf->watch && leaf->watch->stamp ? leaf->watch->stamp(leaf->watch->owner) : 0;
}

static mr_status copy_list(const mr_call *call, mr_call *owned) {
  owned->more = NULL;
  owned->more_count = 0;
  if (call->more_count == 0) return MR_OK;
  void *block = NULL;
  MR_TRY(mr_memory_allocate_array(call->more_count, sizeof(mr_tensor *), &block));
  owned->more = block;
  owned->more_count = call->more_count;
  for (int64_t i = 0; i < call->more_count; i++) owned->more[i] = mr_tensor_retain(call->more[i]);
  return MR_OK;
}

mr_status mr_node_new(mr_tape *tape, const mr_call *call, mr_node **node) {
  void *block = NULL;
  *node = NULL;
  MR_TRY(mr_memory_allocate_record(sizeof(mr_node), &block));
  mr_node *made = block;
  made->origin.release = release_node;
  made->visited = 0;
  made->consumed = 0;
  made->next_released = NULL;
  made->call = *call;
  mr_status status = copy_list(call, &made->call);
  if (status != MR_OK) {
    mr_memory_release(made);
    return status;
  }
  made->number = ++tape->recorded;
  made->output_version = call->output->storage->version;
  for (int i = 0; i < call->op->arguments; i++) {
    mr_tensor *input = call->tensor[i];
    if (!input) continue; /* its version and stamp are never read */
    mr_tensor_retain(input);
    made->version[i] = input->storage->version;
    made->stamp[i] = stamp_of(input);
  }
  *node = made;
  return MR_OK;
}

void mr_node_consume(mr_node *node) {
  mr_call *call = &node->call;
  node->consumed = 1;
  for (int i = 0; i < MR_OP_MAX_ARGUMENTS; i++) {
    mr_tensor *input = call->tensor[i];
    call->tensor[i] = NULL;
    mr_tensor_release(input);
  }
  for (int i = 0; i < MR_OP_MAX_SAVED; i++) {
    mr_tensor_release(call->saved[i]);
    call->saved[i] = NULL;
  }
  for (int64_t i = 0; i < call->more_count; i++) mr_tensor_release(call->more[i]);
  mr_memory_release(call->more);
  call->more = NULL;
  call->more_count = 0;
}

mr_status mr_node_each_input(mr_node *node, mr_node_visit visit, void *context) {
  mr_call *call = &node->call;
  for (int i = 0; i < call->op->arguments; i++)
    if (call->tensor[i] && call->op->argument[i].kind == MR_ARGUMENT_REAL)
      MR_TRY(visit(context, node, call->tensor[i], i));
  for (int64_t i = 0; i < call->more_count; i++) MR_TRY(visit(context, node, call->more[i], -1));
  return MR_OK;
}
