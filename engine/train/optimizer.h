/* Optimizers: one step over the flat buffers of a unit.
 *
 * Invariant: state tensors have layout and dtype of the unit's master; `steps` counts the steps
 * taken and is saved and restored with them. A step is refused while the unit's guard refuses it.
 */
#ifndef MR_TRAIN_OPTIMIZER_H
#define MR_TRAIN_OPTIMIZER_H

#include "base/status.h"
#include "train/unit.h"

typedef struct mr_optimizer mr_optimizer;

/* Settings that have nothing to do with lr, which each step is given. */
typedef struct mr_sgd_settings {
  double momentum, decay;
  int nesterov;
  int decay_all; /* decay every range, not only those that decay */
} mr_sgd_settings;

typedef struct mr_adamw_settings {
  double beta1, beta2, epsilon, decay;
  int decay_all;
} mr_adamw_settings;

/* p -= lr g', where g' = g + decay p; with momentum the velocity v = momentum v + g' (Sutskever
 * et al. 2013; the first step starts v at g'), Nesterov's form p -= lr (g' + momentum v).
 * Errors: MR_ERROR_ARGUMENT (a setting out of range), MR_ERROR_MEMORY. Retains the unit. */
mr_status mr_optimizer_new_sgd(mr_unit *unit, const mr_sgd_settings *settings, mr_optimizer **made);

/* Adam with decoupled weight decay (Loshchilov and Hutter 2019) and bias correction. */
mr_status mr_optimizer_new_adamw(mr_unit *unit, const mr_adamw_settings *settings,
                                 mr_optimizer **made);
/* NULL does nothing. */
void mr_optimizer_release(mr_optimizer *optimizer);

/* One step with learning rate `lr` on `factor` times the gradients, which stay as they are.
 * Errors: MR_ERROR_ARGUMENT when lr or factor is negative or not finite, or when the gradients are
 * not ready (guard). */
mr_status mr_optimizer_step(mr_optimizer *optimizer, double lr, double factor);

int64_t mr_optimizer_steps(const mr_optimizer *optimizer);
/* Sets the number of steps taken, after state tensors were restored. */
void mr_optimizer_restore_steps(mr_optimizer *optimizer, int64_t steps);

/* State tensor `i` and its name; NULL past the last. Borrowed. */
mr_tensor *mr_optimizer_state(mr_optimizer *optimizer, int i, const char **name);

#endif
