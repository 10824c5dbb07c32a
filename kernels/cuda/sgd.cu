/* Stochastic gradient descent with momentum; see mr_sgd. */
#include "kernels/cuda/each.h"
#include "kernels/cuda/real.h"
#include "kernels/cuda/table.h"

namespace {

/* All but the copy of parameters of bf16 is in the type of sums. */
template <typename T>
struct plain {
  typedef typename mr_cuda_sum<T>::type A;
  A lr, decay, factor;
  const A *g;
  A *p;
  T *copy; /* or NULL */
  __device__ void operator()(int64_t i) const {
    const A moved = p[i] - lr * (factor * g[i] + decay * p[i]);
    p[i] = moved;
    if (copy != NULL) copy[i] = mr_down<T>(moved);
  }
};

template <typename T>
struct with_momentum {
  typedef typename mr_cuda_sum<T>::type A;
  A lr, decay, factor, momentum;
  int nesterov, first;
  const A *g;
  A *p, *v;
  T *copy; /* or NULL */
  __device__ void operator()(int64_t i) const {
    const A gradient = factor * g[i] + decay * p[i];
    const A velocity = first ? gradient : momentum * v[i] + gradient;
    v[i] = velocity;
    const A moved = p[i] - lr * (nesterov ? gradient + momentum * velocity : velocity);
    p[i] = moved;
    if (copy != NULL) copy[i] = mr_down<T>(moved);
  }
};

template <typename T>
int sgd(const mr_launch *l, int64_t n, const mr_sgd *o, const void *g, void *p, void *velocity) {
  typedef typename mr_cuda_sum<T>::type A;
  const A lr = (A)o->lr, decay = (A)o->decay, factor = (A)o->factor;
  const A *gradient = (const A *)g;
  T *copy = (T *)o->copy;
  if (o->momentum == 0) {
    return mr_cuda_each(l, n, plain<T>{lr, decay, factor, gradient, (A *)p, copy});
  }
  return mr_cuda_each(l, n,
                      with_momentum<T>{lr, decay, factor, (A)o->momentum, o->nesterov, o->first,
                                       gradient, (A *)p, (A *)velocity, copy});
}

template <typename T>
void rows(mr_kernels *k) {
  k->sgd = sgd<T>;
}

}  // namespace

MR_CUDA_ROWS(sgd)
