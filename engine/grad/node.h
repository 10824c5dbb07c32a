/* A recorded call. Internal to the grad floor. */
#ifndef MR_GRAD_NODE_H
#define MR_GRAD_NODE_H

#include "grad/tape.h"

typedef struct mr_node mr_node;

struct mr_node {
  mr_origin origin; /* first: a tensor's origin is its node */
  int64_t number;   /* order of recording */
  int64_t visited;  /* number of the backward that has listed it */
  int consumed;
  mr_call call; /* owns its inputs and saved tensors; output is borrowed */
  int64_t version[MR_OP_MAX_ARGUMENTS];
  int64_t output_version;
  int64_t stamp[MR_OP_MAX_ARGUMENTS]; /* of watched leaves */
  mr_node *next_released;
};

/* Records `call`; its saved tensors move to the node, its inputs are retained. */
mr_status mr_node_new(mr_tape *tape, const mr_call *call, mr_node **node);

/* Releases inputs and saved tensors; the node stays, consumed. */
void mr_node_consume(mr_node *node);

/* Calls `visit(context, node, tensor, argument)` for every real input; argument is -1 for those
 * of a list. Stops at the first failure. */
typedef mr_status (*mr_node_visit)(void *context, mr_node *node, mr_tensor *input, int argument);
mr_status mr_node_each_input(mr_node *node, mr_node_visit visit, void *context);

/* Calls `visit(context, node)` for every call that `root` depends on, in the order of recording.
 * Errors: MR_ERROR_ARGUMENT when it depends on no recorded call; those of `visit`. */
mr_status mr_tape_each_node(mr_tape *tape, mr_tensor *root,
                            mr_status (*visit)(void *context, mr_node *node), void *context);

#endif
