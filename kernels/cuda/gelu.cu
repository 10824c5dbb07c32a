/* GELU in its tanh form; see gelu.h. */
#include "kernels/cuda/gelu.h"
#include "kernels/cuda/table.h"

namespace {

template <typename T>
int gelu(const mr_launch *l, int64_t n, const void *x, void *y) {
  return mr_cuda_each(l, n, mr_cuda_gelu<T>{(const T *)x, (T *)y});
}

template <typename T>
int gelu_backward(const mr_launch *l, int fresh, int64_t n, const void *x, const void *dy,
                  void *dx) {
  return mr_cuda_each(l, n, mr_cuda_gelu_backward<T>{fresh, (const T *)x, (const T *)dy, (T *)dx});
}

template <typename T>
void rows(mr_kernels *k) {
  k->gelu = gelu<T>;
  k->gelu_backward = gelu_backward<T>;
}

}  // namespace

MR_CUDA_ROWS(gelu)
