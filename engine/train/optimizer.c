#include "train/optimizer.h"

#include <math.h>
#include <stddef.h>

#include "base/memory.h"

enum { MAX_STATES = 2 };

typedef struct step {
  int64_t first, count; /* elements */
  double lr, decay, factor;
} step;

struct mr_optimizer {
  mr_unit *unit;
  int64_t steps;
  mr_tensor *state[MAX_STATES];
  const char *state_name[MAX_STATES];
  int states;
  double decay;
  int decay_all;
  mr_status (*update)(mr_optimizer *optimizer, const step *part);
  mr_sgd_settings sgd;
  mr_adamw_settings adamw;
};

static void *elements(const mr_tensor *flat, int64_t first) {
  if (!flat) return NULL;
  return (char *)mr_tensor_data(flat) + first * mr_dtype_size(flat->dtype);
}

/* Where a step leaves the rounded copy of what it moves; NULL where parameters are no copy. */
static void *copy_of(const mr_unit *unit, int64_t first) {
  return unit->values == unit->master ? NULL : elements(unit->values, first);
}

static mr_status update_sgd(mr_optimizer *o, const step *part) {
  mr_sgd settings = {.lr = part->lr,
                     .momentum = o->sgd.momentum,
                     .decay = part->decay,
                     .factor = part->factor,
                     .nesterov = o->sgd.nesterov,
                     .first = o->steps == 0,
                     .copy = copy_of(o->unit, part->first)};
  return MR_KERNEL(o->unit->device, o->unit->dtype, sgd, part->count, &settings,
                   elements(o->unit->gradients, part->first),
                   elements(o->unit->master, part->first), elements(o->state[0], part->first));
}

static mr_status update_adamw(mr_optimizer *o, const step *part) {
  mr_adamw settings = {.lr = part->lr,
                       .beta1 = o->adamw.beta1,
                       .beta2 = o->adamw.beta2,
                       .epsilon = o->adamw.epsilon,
                       .decay = part->decay,
                       .factor = part->factor,
                       .step = o->steps + 1,
                       .copy = copy_of(o->unit, part->first)};
  return MR_KERNEL(o->unit->device, o->unit->dtype, adamw, part->count, &settings,
                   elements(o->unit->gradients, part->first),
                   elements(o->unit->master, part->first), elements(o->state[0], part->first),
                   elements(o->state[1], part->first));
}

static mr_status add_state(mr_optimizer *optimizer, const char *name) {
  mr_unit *unit = optimizer->unit;
  int i = optimizer->states;
  MR_TRY(
      mr_tensor_new(unit->device, unit->master->dtype, &unit->master->shape, &optimizer->state[i]));
  optimizer->state_name[i] = name;
  optimizer->states = i + 1;
  return MR_OK;
}

static mr_status new_optimizer(mr_unit *unit, mr_optimizer **made) {
  void *block = NULL;
  *made = NULL;
  MR_TRY(mr_memory_allocate(sizeof(mr_optimizer), &block));
  *made = block;
  (*made)->unit = mr_unit_retain(unit);
  return MR_OK;
}

static mr_status check_setting(const char *name, double value, double below) {
  if (value >= 0 && value < below) return MR_OK;
  if (isinf(below))
    return mr_fail(MR_ERROR_ARGUMENT, "%s must be a finite number of at least 0, got %g", name,
                   value);
  return mr_fail(MR_ERROR_ARGUMENT, "%s must be at least 0 and below %g, got %g", name, below,
                 value);
}

mr_status mr_optimizer_new_sgd(mr_unit *unit, const mr_sgd_settings *settings,
                               mr_optimizer **made) {
  *made = NULL;
  MR_TRY(check_setting("momentum", settings->momentum, 1));
  MR_TRY(check_setting("decay", settings->decay, INFINITY));
  if (settings->nesterov && settings->momentum <= 0)
    return mr_fail(MR_ERROR_ARGUMENT, "nesterov needs a momentum above 0");
  MR_TRY(new_optimizer(unit, made));
  (*made)->sgd = *settings;
  (*made)->decay = settings->decay;
  (*made)->decay_all = settings->decay_all;
  (*made)->update = update_sgd;
  mr_status status = settings->momentum > 0 ? add_state(*made, "velocity") : MR_OK;
  if (status != MR_OK) {
    mr_optimizer_release(*made);
    *made = NULL;
  }
  return status;
}

mr_status mr_optimizer_new_adamw(mr_unit *unit, const mr_adamw_settings *settings,
                                 mr_optimizer **made) {
  *made = NULL;
  MR_TRY(check_setting("beta1", settings->beta1, 1));
  MR_TRY(check_setting("beta2", settings->beta2, 1));
  if (!(settings->epsilon > 0) || isinf(settings->epsilon)) /* 0 / 0 where no gradient ever came */
    return mr_fail(MR_ERROR_ARGUMENT, "epsilon must be a finite number above 0, got %g",
                   settings->epsilon);
  MR_TRY(check_setting("decay", settings->decay, INFINITY));
  MR_TRY(new_optimizer(unit, made));
  (*made)->adamw = *settings;
  (*made)->decay = settings->decay;
  (*made)->decay_all = settings->decay_all;
  (*made)->update = update_adamw;
  mr_status status = add_state(*made, "m");
  if (status == MR_OK) status = add_state(*made, "v");
  if (status != MR_OK) {
    mr_optimizer_release(*made);
    *made = NULL;
  }
  return status;
}

void mr_optimizer_release(mr_optimizer *optimizer) {
  if (!optimizer) return;
  for (int i = 0; i < MAX_STATES; i++) mr_tensor_release(optimizer->state[i]);
  mr_unit_release(optimizer->unit);
  mr_memory_release(optimizer);
}

static int decays(const mr_optimizer *optimizer, int64_t range) {
  return optimizer->decay > 0 && (optimizer->decay_all || optimizer->unit->range[range].decays);
}

/* Neighbouring ranges with the same decay are one call: gaps between them hold zeros, which no
 * update moves. */
static mr_status update_runs(mr_optimizer *optimizer, double lr, double factor) {
  const mr_unit *unit = optimizer->unit;
  for (int64_t i = 0, next; i < unit->ranges; i = next) {
    int decay = decays(optimizer, i);
    for (next = i + 1; next < unit->ranges && decays(optimizer, next) == decay;) next++;
    int64_t first = unit->range[i].offset;
    int64_t last = next < unit->ranges ? unit->range[next].offset : unit->count;
    step part = {first, last - first, lr, decay ? optimizer->decay : 0, factor};
    MR_TRY(optimizer->update(optimizer, &part));
  }
  return MR_OK;
}

mr_status mr_optimizer_step(mr_optimizer *optimizer, double lr, double factor) {
  mr_unit *unit = optimizer->unit;
  if (!(lr >= 0) || !isfinite(lr))
    return mr_fail(MR_ERROR_ARGUMENT, "lr must be a finite number of at least 0, got %g", lr);
  if (!(factor >= 0) || !isfinite(factor))
    return mr_fail(MR_ERROR_ARGUMENT,
                   "a factor of the gradients must be a finite number of at least 0, got %g",
                   factor);
  if (unit->guard.check) MR_TRY(unit->guard.check(unit->guard.owner));
  mr_unit_stepped(unit);
  MR_TRY(update_runs(optimizer, lr, factor));
  optimizer->steps++;
  return MR_OK;
}

int64_t mr_optimizer_steps(const mr_optimizer *optimizer) { return optimizer->steps; }

void mr_optimizer_restore_steps(mr_optimizer *optimizer, int64_t steps) {
  optimizer->steps = steps;
}

mr_tensor *mr_optimizer_state(mr_optimizer *optimizer, int i, const char **name) {
  if (i < 0 || i >= optimizer->states) return NULL;
  *name = optimizer->state_name[i];
  return optimizer->state[i];
}
