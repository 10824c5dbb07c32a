/* A unit: the parameters of a model in one flat buffer, and their gradients in another of the
 * same layout. Optimizer, reducer, checkpoint and parity work on these buffers.
 *
 * Invariants: range i covers elements offset .. offset + count - 1; ranges begin at multiples of
 * 32 elements in the order given, so at multiples of 64 bytes, and at the same elements in every
 * dtype; the elements between ranges are 0 and stay 0. A parameter is a
 * leaf tensor over its range, and its gradient one over the same range of `gradients`.
 *
 * Parameters that operations read lie in `values`. Those that an optimizer moves, that ranks
 * exchange and that checkpoints hold lie in `master`, in the wide dtype, as do the gradients: for
 * bf16 they are f32 and `values` is their copy, rounded to nearest even; for others both are one
 * buffer. What was written into master otherwise than by a step is read after mr_unit_refresh. */
#ifndef MR_TRAIN_UNIT_H
#define MR_TRAIN_UNIT_H

#include <stdint.h>

#include "base/status.h"
#include "tensor/tensor.h"

typedef struct mr_range {
  const char *name; /* owned by the unit once it is made */
  mr_shape shape;
  int decays; /* weight decay applies */
  int64_t offset, count;
  mr_tensor *parameter; /* owned */
} mr_range;

/* Says whether the gradients are what a step needs; set by a reducer. */
typedef struct mr_step_guard {
  void *owner;
  mr_status (*check)(void *owner);
} mr_step_guard;

typedef struct mr_unit {
  int64_t references;
  mr_device *device;
  mr_dtype dtype;
  int64_t ranges;
  mr_range *range;
  int64_t count; /* elements of the flat buffers, gaps included */
  mr_tensor *values, *master, *gradients;
  int64_t copied; /* version of master that `values` has, where they differ */
  int64_t copies; /* changes of `values` that were of this kind */
  mr_step_guard guard;
} mr_unit;

/* A unit of zeros. `range` gives name, shape and decays of each; it is copied. Errors:
 * MR_ERROR_ARGUMENT (no real dtype, names that repeat), MR_ERROR_MEMORY. */
mr_status mr_unit_new(mr_device *device, mr_dtype dtype, const mr_range *range, int64_t ranges,
                      mr_unit **unit);
mr_unit *mr_unit_retain(mr_unit *unit);
/* NULL does nothing. */
void mr_unit_release(mr_unit *unit);

/* The range of that name, or -1. */
int64_t mr_unit_find(const mr_unit *unit, const char *name);

/* Parameters without gaps. */
int64_t mr_unit_parameters(const mr_unit *unit);

/* Makes `values` the rounded copy of `master`; nothing where it is, or both are one. */
mr_status mr_unit_refresh(mr_unit *unit);
/* Notes that a step changes master, and `values` with it. */
void mr_unit_stepped(mr_unit *unit);
/* Grows with every change of the parameters, of their copy too unless it only follows them. */
int64_t mr_unit_version(const mr_unit *unit);

mr_status mr_unit_zero_gradients(mr_unit *unit);

/* The 2-norm of all gradients, summed in double in a fixed order. */
mr_status mr_unit_gradient_norm_sync(mr_unit *unit, double *norm);

/* min(1, maximum / (norm + 1e-6)): clipping by global norm (Pascanu, Mikolov, Bengio 2013). 1 for
 * a norm that is not finite. */
double mr_clip_factor(double maximum, double norm);

/* Scales all gradients by the clip factor of their norm, and gives the norm before. */
mr_status mr_unit_clip_sync(mr_unit *unit, double maximum, double *norm);

#endif
