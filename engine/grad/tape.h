/* The tape: records operations whose inputs require gradients, and runs backward over them.
 *
 * Invariants
 *   - a recorded call is kept alive by its output, and keeps its inputs alive: what nobody can
 *     reach any more is gone, whether or not a backward ran;
 *   - backward visits calls in the reverse order of their recording, so that the order of all
 *     additions, and with it every bit, depends on the program only;
 *   - backward consumes the graph: once a call is done its saved tensors are released and its
 *     output ends, unless keep() was asked for; the root keeps its value. */
#ifndef MR_GRAD_TAPE_H
#define MR_GRAD_TAPE_H

#include <stdint.h>

#include "base/status.h"
#include "grad/op.h"

typedef struct mr_tape {
  int64_t recorded; /* calls so far: each gets the next number */
  int64_t backwards;
  int paused;                 /* depth of scopes without gradients */
  struct mr_profile *profile; /* gets the time of each call; NULL: no clock is read */
} mr_tape;

/* Follows the gradients of leaves (parameters): the reducer of a replica. All functions get
 * `owner`. Those that are NULL are skipped. */
typedef struct mr_watch {
  void *owner;
  /* Read when a recorded call takes a leaf in; given back to `begin`. */
  int64_t (*stamp)(void *owner);
  /* Before a backward changes anything, for every recorded use of a leaf. A failure refuses the
   * backward; the graph stays. */
  mr_status (*begin)(void *owner, int64_t stamp);
  /* The gradient of `leaf` has all contributions of this backward. */
  mr_status (*arrived)(void *owner, mr_tensor *leaf);
  /* Between two calls of a backward. */
  mr_status (*progress)(void *owner);
  /* All calls of this backward are done. */
  mr_status (*finish)(void *owner);
} mr_watch;

/* Runs the call and sets call->output (a new reference for the caller). The arguments of `call`
 * are borrowed; what the tape needs for backward it retains. Afterwards the caller releases
 * nothing but its own references: saved tensors have been moved or released. */
mr_status mr_tape_apply(mr_tape *tape, mr_call *call);

/* The same for an operation that is a pair: *first is the first one's output, also new. */
mr_status mr_tape_apply_pair(mr_tape *tape, mr_call *call, mr_tensor **first);

/* Adds d root / d leaf to the gradient of every leaf that requires one. `root` has one element.
 * Errors: MR_ERROR_ARGUMENT when root depends on no leaf, was consumed, or an input was changed
 * in place since the forward; errors of the watches. */
mr_status mr_tape_backward(mr_tape *tape, mr_tensor *root);

/* The gradient of `tensor`, made (zeros) when there is none: that of a leaf in the wide dtype of
 * its own, since backwards add to it; that of a result in its own. Borrowed. */
mr_status mr_tape_gradient(mr_tensor *tensor, mr_tensor **gradient);

#endif
