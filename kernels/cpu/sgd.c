/* Stochastic gradient descent with momentum; see mr_sgd. */
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/rows.h"

static void plain(int64_t n, const mr_sgd *o, const real *restrict g, real *restrict p) {
  const real lr = (real)o->lr, decay = (real)o->decay, factor = (real)o->factor;
  for (int64_t i = 0; i < n; i++) p[i] -= lr * (factor * g[i] + decay * p[i]);
}

/* v in one pass, p in the next: a block stays in the cache between them. */
static void with_momentum(int64_t n, const mr_sgd *o, const real *restrict g, real *restrict p,
                          real *restrict v) {
  const real lr = (real)o->lr, decay = (real)o->decay, momentum = (real)o->momentum;
  const real factor = (real)o->factor;
  if (o->first) {
    for (int64_t i = 0; i < n; i++) v[i] = factor * g[i] + decay * p[i];
  } else {
    for (int64_t i = 0; i < n; i++) v[i] = momentum * v[i] + (factor * g[i] + decay * p[i]);
  }
  if (o->nesterov) {
    for (int64_t i = 0; i < n; i++) p[i] -= lr * ((factor * g[i] + decay * p[i]) + momentum * v[i]);
  } else {
    for (int64_t i = 0; i < n; i++) p[i] -= lr * v[i];
  }
}

int MR_ROW(sgd)(const mr_launch *l, int64_t n, const mr_sgd *o, const void *g, void *p,
                void *velocity) {
  MR_EACH_PIECE(l, n, first, n, MR_BLOCK, {
    const int64_t count = mr_min(MR_BLOCK, n - first);
    const real *gradient = (const real *)g + first;
    real *parameter = (real *)p + first;
    if (o->momentum == 0) {
      plain(count, o, gradient, parameter);
    } else {
      with_momentum(count, o, gradient, parameter, (real *)velocity + first);
    }
  });
  return 0;
}
