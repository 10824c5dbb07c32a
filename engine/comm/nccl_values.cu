#include "comm/nccl_values.h"
#include "kernels/cuda/each.h"
#include "kernels/cuda/stream.h"

namespace {

template <typename T>
struct divided {
  T factor, *x;
  __device__ void operator()(int64_t i) const { x[i] *= factor; }
};

/* Reals of one sign are ordered as their bits; of the negative ones, the other way round. I is the
 * integer of the real's width. */
template <typename I>
struct key {
  static constexpr I most = (I)((sizeof(I) == 4) ? INT32_MAX : INT64_MAX);
  static constexpr I infinity =
      (I)(sizeof(I) == 4 ? INT64_C(0x7f800000) : INT64_C(0x7ff0000000000000));
  /* Its own inverse. */
  __device__ static I turned(I bits) { return bits < 0 ? (I)(bits ^ most) : bits; }
};

template <typename I>
struct to_key {
  I nan;
  const I *x;
  I *keys;
  __device__ void operator()(int64_t i) const {
    const I bits = x[i];
    keys[i] = (bits & key<I>::most) > key<I>::infinity ? nan : key<I>::turned(bits);
  }
};

template <typename I>
struct from_key {
  I *keys;
  __device__ void operator()(int64_t i) const { keys[i] = key<I>::turned(keys[i]); }
};

template <typename F>
int each(cudaStream_t stream, int64_t n, F f) {
  mr_cuda_stream s = {};
  mr_launch l = {};
  s.stream = stream;
  l.stream = &s;
  return mr_cuda_each(&l, n, f);
}

template <typename I>
int to_keys(cudaStream_t stream, int nan_last, int64_t n, const void *x, void *keys) {
  const I nan = nan_last ? key<I>::most : (I)(-key<I>::most - 1);
  return each(stream, n, to_key<I>{nan, static_cast<const I *>(x), static_cast<I *>(keys)});
}

}  // namespace

int mr_nccl_divide(cudaStream_t stream, mr_dtype dtype, int64_t n, int size, void *x) {
  if (dtype == MR_F32)
    return each(stream, n, divided<float>{1.0F / (float)size, static_cast<float *>(x)});
  return each(stream, n, divided<double>{1.0 / (double)size, static_cast<double *>(x)});
}

int mr_nccl_to_keys(cudaStream_t stream, mr_dtype dtype, int nan_last, int64_t n, const void *x,
                    void *keys) {
  if (dtype == MR_F32) return to_keys<int32_t>(stream, nan_last, n, x, keys);
  return to_keys<int64_t>(stream, nan_last, n, x, keys);
}

int mr_nccl_from_keys(cudaStream_t stream, mr_dtype dtype, int64_t n, void *keys) {
  if (dtype == MR_F32) return each(stream, n, from_key<int32_t>{static_cast<int32_t *>(keys)});
  return each(stream, n, from_key<int64_t>{static_cast<int64_t *>(keys)});
}
