/* AdamW (Loshchilov and Hutter, "Decoupled weight decay regularization", 2019); see mr_adamw. */
#include <math.h>
#include <tgmath.h>

#include "kernels/cpu/parallel.h"
#include "kernels/cpu/rows.h"

/* The scalars of one step, worked out in double. */
typedef struct step {
  real keep;       /* 1 - lr decay */
  real to_m, to_v; /* 1 - beta1, 1 - beta2 */
  real rate;       /* lr / (1 - beta1^step) */
  real spread;     /* 1 / sqrt(1 - beta2^step) */
  real epsilon;
  real factor; /* of the gradient */
} step;

static step step_of(const mr_adamw *o) {
  const double first = 1 - pow(o->beta1, (double)o->step);
  const double second = 1 - pow(o->beta2, (double)o->step);
  return (step){.keep = (real)(1 - o->lr * o->decay),
                .to_m = (real)(1 - o->beta1),
                .to_v = (real)(1 - o->beta2),
                .rate = (real)(o->lr / first),
                .spread = (real)(1 / sqrt(second)),
                .epsilon = (real)o->epsilon,
                .factor = (real)o->factor};
}

static void update(int64_t n, step s, const real *restrict g, real *restrict p, real *restrict m,
                   real *restrict v) {
  for (int64_t i = 0; i < n; i++) {
    const real d = g[i] * s.factor;
    m[i] += s.to_m * (d - m[i]);
    v[i] += s.to_v * (d * d - v[i]);
    const real kept = p[i] * s.keep;
    p[i] = kept - s.rate * (m[i] / (sqrt(v[i]) * s.spread + s.epsilon));
  }
}

int MR_ROW(adamw)(const mr_launch *l, int64_t n, const mr_adamw *o, const void *g, void *p, void *m,
                  void *v) {
  const step s = step_of(o);
  MR_EACH_PIECE(l, 4 * n, first, n, MR_BLOCK, {
    update(mr_min(MR_BLOCK, n - first), s, (const real *)g + first, (real *)p + first,
           (real *)m + first, (real *)v + first);
  });
  return 0;
}
