/* AdamW (Loshchilov and Hutter, "Decoupled weight decay regularization", 2019); see mr_adamw. */
#include <math.h>

#include "kernels/cuda/each.h"
#include "kernels/cuda/real.h"
#include "kernels/cuda/table.h"

namespace {

/* The scalars of one step, worked out in double. */
template <typename T>
struct update {
  T keep;       /* 1 - lr decay */
  T to_m, to_v; /* 1 - beta1, 1 - beta2 */
  T rate;       /* lr / (1 - beta1^step) */
  T spread;     /* 1 / sqrt(1 - beta2^step) */
  T epsilon;
  T factor; /* of the gradient */
  const T *g;
  T *p, *m, *v;
  __device__ void operator()(int64_t i) const {
    const T d = g[i] * factor;
    const T first = m[i] + to_m * (d - m[i]);
    const T second = v[i] + to_v * (d * d - v[i]);
    m[i] = first;
    v[i] = second;
    p[i] = p[i] * keep - rate * (first / (sqrt(second) * spread + epsilon));
  }
};

template <typename T>
int adamw(const mr_launch *l, int64_t n, const mr_adamw *o, const void *g, void *p, void *m,
          void *v) {
  const double first = 1 - pow(o->beta1, (double)o->step);
  const double second = 1 - pow(o->beta2, (double)o->step);
  return mr_cuda_each(l, n,
                      update<T>{(T)(1 - o->lr * o->decay), (T)(1 - o->beta1), (T)(1 - o->beta2),
                                (T)(o->lr / first), (T)(1 / sqrt(second)), (T)o->epsilon,
                                (T)o->factor, (const T *)g, (T *)p, (T *)m, (T *)v});
}

template <typename T>
void rows(mr_kernels *k) {
  k->adamw = adamw<T>;
}

}  // namespace

MR_CUDA_ROWS(adamw)
