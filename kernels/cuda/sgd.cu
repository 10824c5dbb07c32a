/* Stochastic gradient descent with momentum; see mr_sgd. */
#include "kernels/cuda/each.h"
#include "kernels/cuda/real.h"
#include "kernels/cuda/table.h"

namespace {

template <typename T>
struct plain {
  T lr, decay, factor;
  const T *g;
  T *p;
  __device__ void operator()(int64_t i) const { p[i] -= lr * (factor * g[i] + decay * p[i]); }
};

template <typename T>
struct with_momentum {
  T lr, decay, factor, momentum;
  int nesterov, first;
  const T *g;
  T *p, *v;
  __device__ void operator()(int64_t i) const {
    const T gradient = factor * g[i] + decay * p[i];
    const T velocity = first ? gradient : momentum * v[i] + gradient;
    v[i] = velocity;
    p[i] -= lr * (nesterov ? gradient + momentum * velocity : velocity);
  }
};

template <typename T>
int sgd(const mr_launch *l, int64_t n, const mr_sgd *o, const void *g, void *p, void *velocity) {
  const T lr = (T)o->lr, decay = (T)o->decay, factor = (T)o->factor;
  const T *gradient = (const T *)g;
  if (o->momentum == 0) return mr_cuda_each(l, n, plain<T>{lr, decay, factor, gradient, (T *)p});
  return mr_cuda_each(l, n,
                      with_momentum<T>{lr, decay, factor, (T)o->momentum, o->nesterov, o->first,
                                       gradient, (T *)p, (T *)velocity});
}

template <typename T>
void rows(mr_kernels *k) {
  k->sgd = sgd<T>;
}

}  // namespace

MR_CUDA_ROWS(sgd)
