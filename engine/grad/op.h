/* One record per operation. The Lua method, its argument errors, the annotations and the list
 * that the specs walk are made from the record, so an operation has one name on every floor.
 *
 * Life of a call: the caller fills the arguments; `result` checks them and gives the shape and
 * dtype of the output; the tape makes the output; `forward` writes it. When the call is recorded
 * and backward reaches it, the tape fills `output_gradient` and the gradient pointers of the
 * arguments that need one; `backward` adds to those that are not NULL. */
#ifndef MR_GRAD_OP_H
#define MR_GRAD_OP_H

#include "base/status.h"
#include "tensor/tensor.h"

enum { MR_OP_MAX_ARGUMENTS = 8, MR_OP_MAX_SAVED = 2 };

typedef enum mr_argument_kind {
  MR_ARGUMENT_REAL,     /* real tensor with a gradient; all of a call have one dtype */
  MR_ARGUMENT_CONSTANT, /* of the wide dtype of those, and never receives a gradient */
  MR_ARGUMENT_I32,
  MR_ARGUMENT_I64,
  MR_ARGUMENT_TENSORS, /* a list of REAL tensors (`more` in the call) */
  MR_ARGUMENT_NUMBER,
  MR_ARGUMENT_INTEGER,
  MR_ARGUMENT_FLAG,
  MR_ARGUMENT_SHAPE /* a list of extents (`extents` in the call) */
} mr_argument_kind;

typedef struct mr_argument {
  const char *name;
  mr_argument_kind kind;
  int optional; /* absent tensors are NULL; absent numbers take `fallback` */
  int named;    /* given in the table of options that ends the call, not by position */
  double fallback;
  const char *text; /* for the reference: shape, unit, meaning */
} mr_argument;

typedef struct mr_call mr_call;
typedef struct mr_op mr_op;

/* `count` matrix products c[m, n] = op(a) op(b), or c += where it adds. A batch is of small
 * products that run beside each other; others are cut into tiles one by one. */
typedef struct mr_product_shape {
  int64_t count;
  int batched, transpose_a, transpose_b;
  int64_t m, n, k;
  int adds;
} mr_product_shape;

typedef mr_status (*mr_product_visit)(void *context, const mr_product_shape *shape);

/* Two operations in one pass. The arguments of the call are those of the first, then those of the
 * second without its first, which is the first's output. Both are recorded as they are, so their
 * backwards serve; only the forward is one. */
typedef struct mr_pair {
  const mr_op *first, *second;
  const char *first_text; /* for the reference: what the first one's output, returned last, is */
  /* Writes the outputs of both calls and saves what the second's backward reads. */
  mr_status (*forward)(mr_call *first, mr_call *second);
} mr_pair;

struct mr_op {
  const char *name;
  const char *text;        /* for the reference: one sentence */
  const char *result_text; /* for the reference: dtype where it is not x's, shape */
  int arguments;
  mr_argument argument[MR_OP_MAX_ARGUMENTS];
  /* Bits of arguments. writes: backward writes the gradient instead of adding to it where
   * call->fresh says so; then takes_over: it may lie where the output's gradient lies, and
   * overwrites: where the argument's value lies. passes: the gradient is the output's own, where
   * the sizes are equal. */
  unsigned writes, takes_over, overwrites, passes;
  /* Bits of arguments whose gradient backward gives in the wide dtype of the call's: f32 for bf16,
   * as kernels.h says. Never of those that are in `writes`. */
  unsigned sums;
  int reads_output; /* backward reads the output's value */
  int is_view;      /* `forward` sets output itself, sharing its input's storage */
  /* Shape and dtype of the output; MR_ERROR_ARGUMENT or MR_ERROR_CONTENT on bad arguments. */
  mr_status (*result)(mr_call *call, mr_shape *shape, mr_dtype *dtype);
  mr_status (*forward)(mr_call *call);
  mr_status (*backward)(mr_call *call); /* NULL: the result never requires a gradient */
  /* Tells the products of forward and backward to `visit`; NULL for operations without any. */
  mr_status (*products)(const mr_call *call, mr_product_visit visit, void *context);
  const mr_pair *pair; /* then the functions above are those of the two */
};

struct mr_call {
  const mr_op *op;
  mr_device *device; /* of all tensors; set by mr_tape_apply */
  mr_dtype dtype;    /* of the real arguments */
  /* By index of the argument in the record. */
  mr_tensor *tensor[MR_OP_MAX_ARGUMENTS];
  double number[MR_OP_MAX_ARGUMENTS];
  int64_t integer[MR_OP_MAX_ARGUMENTS]; /* INTEGER and FLAG */
  mr_shape extents;
  int64_t more_count;
  mr_tensor **more; /* owned array, owned references while the call is recorded */

  mr_tensor *output;                 /* owned by the caller; a recorded call borrows it */
  mr_tensor *saved[MR_OP_MAX_SAVED]; /* made by forward through mr_call_save */

  const void *output_gradient; /* during backward */
  void *gradient[MR_OP_MAX_ARGUMENTS];
  unsigned fresh; /* bits of arguments whose gradient holds nothing yet, not even zeros */
  unsigned done;  /* bits of arguments that have had their gradient already */
  void **more_gradient;
  struct mr_apart *apart; /* gradients given in another dtype than they are kept in */
};

/* Elements of argument i, or NULL when it is absent. */
void *mr_call_data(const mr_call *call, int i);

/* Makes saved tensor `slot` for use by backward; the call owns it. */
mr_status mr_call_save(mr_call *call, int slot, mr_dtype dtype, const mr_shape *shape);

/* MR_ERROR_ARGUMENT "<op>: <message>". */
mr_status mr_call_fail(const mr_call *call, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Checks that argument i has `axes` axes (-1: at least one). */
mr_status mr_call_check_axes(const mr_call *call, int i, int axes);

/* Checks that argument i is a vector of `count` elements. */
mr_status mr_call_check_vector(const mr_call *call, int i, int64_t count);

/* Runs a row of the kernel table of the call's dtype. */
#define MR_CALL_KERNEL(call, row, ...) MR_KERNEL((call)->device, (call)->dtype, row, __VA_ARGS__)

#endif
