/* AdamW (Loshchilov and Hutter, "Decoupled weight decay regularization", 2019); see mr_adamw. */
#include <math.h>

#include "kernels/cuda/each.h"
#include "kernels/cuda/real.h"
#include "kernels/cuda/table.h"

namespace {

/* The scalars of one step, worked out in double. All but the copy of parameters of bf16 is in the
 * type of sums. */
template <typename T>
struct update {
  typedef typename mr_cuda_sum<T>::type A;
  A keep;       /* 1 - lr decay */
  A to_m, to_v; /* 1 - beta1, 1 - beta2 */
  A rate;       /* lr / (1 - beta1^step) */
  A spread;     /* 1 / sqrt(1 - beta2^step) */
  A epsilon;
  A factor; /* of the gradient */
  const A *g;
  A *p, *m, *v;
  T *copy; /* or NULL */
  __device__ void operator()(int64_t i) const {
    const A d = g[i] * factor;
    const A first = m[i] + to_m * (d - m[i]);
    const A second = v[i] + to_v * (d * d - v[i]);
    const A moved = p[i] * keep - rate * (first / (sqrt(second) * spread + epsilon));
    m[i] = first;
    v[i] = second;
    p[i] = moved;
    if (copy != NULL) copy[i] = mr_down<T>(moved);
  }
};

template <typename T>
int adamw(const mr_launch *l, int64_t n, const mr_adamw *o, const void *g, void *p, void *m,
          void *v) {
  typedef typename mr_cuda_sum<T>::type A;
  const double first = 1 - pow(o->beta1, (double)o->step);
  const double second = 1 - pow(o->beta2, (double)o->step);
  return mr_cuda_each(l, n,
                      update<T>{(A)(1 - o->lr * o->decay), (A)(1 - o->beta1), (A)(1 - o->beta2),
                                (A)(o->lr / first), (A)(1 / sqrt(second)), (A)o->epsilon,
                                (A)o->factor, (const A *)g, (A *)p, (A *)m, (A *)v, (T *)o->copy});
}

template <typename T>
void rows(mr_kernels *k) {
  k->adamw = adamw<T>;
}

}  // namespace

MR_CUDA_ROWS(adamw)
