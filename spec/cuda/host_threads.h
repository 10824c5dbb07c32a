/* Threads of a block: indices, shared memory, barriers, shuffles, votes and launches, for the
 * host. See cuda_host.h.
 *
 * A block's threads are fibers of the thread that runs the stream. A thread runs until it waits or
 * ends, so a kernel without any wait is a plain loop; who runs next is drawn. One block runs at a
 * time; shared memory is filled with NaNs before each. Threads of a block are numbered x first;
 * 32 of them are a warp. */
#ifndef MR_SPEC_HOST_THREADS_H
#define MR_SPEC_HOST_THREADS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <functional>
#include <tuple>
#include <type_traits>

#include "host_runtime.h"
#include "host_types.h"

static const int warpSize = 32;

/* Of the thread that runs now. */
#pragma GCC visibility push(hidden)
extern uint3 threadIdx, blockIdx;
extern dim3 blockDim, gridDim;

namespace mr_host {

/* Where a thread waits. */
struct place {
  const char *file;
  int line;
};

enum class meeting { none, block, sync, shuffle, ballot, matrices };

/* Waits until every thread of the block waits here. */
void meet_block(place at);
/* Waits until all lanes of the mask wait with the same mask and kind of meeting; then the last to
 * come calls `work`, once, for all of them, with what each of the 32 lanes brought (NULL outside
 * the mask). Every lane brings the same `work`. */
void meet_warp(place at, meeting kind, unsigned mask, void *mine,
               void (*work)(place at, unsigned mask, void **all));
/* Ends the kernel with an error that names the running block and thread. */
[[noreturn]] void fail(place at, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The block's memory for the declaration that `key` is of: the same for each of its threads. */
void *shared(const void *key, size_t bytes, place at);
void *shared_dynamic();

/* --- launches --- */

struct launch {
  const char *name;
  const void *kernel;
  dim3 grid, block;
  size_t shared_bytes;
  cudaStream_t stream;
};

/* NULL or device memory? Elsewhere a kernel must not look. `index` counts arguments from 1. */
cudaError_t check_words(const launch &l, int index, const void *argument, size_t bytes);
cudaError_t enqueue(const launch &l, std::function<void()> thread);

/* Structs are looked through for pointers, where the compiler can clear what lies between their
 * members: that could hold anything. */
template <typename T>
inline cudaError_t check(const launch &l, int index, T &argument) {
  if constexpr (std::is_pointer<T>::value) {
    return check_words(l, index, &argument, sizeof argument);
  }
#if __has_builtin(__builtin_clear_padding)
  if constexpr (std::is_class<T>::value && alignof(T) >= 8) {
    __builtin_clear_padding(&argument);
    return check_words(l, index, &argument, sizeof argument);
  }
#endif
  return cudaSuccess;
}

template <typename... P, typename... A>
inline cudaError_t start(const launch &of, void (*kernel)(P...), A... arguments) {
  launch l = of;
  l.kernel = (const void *)kernel;
  std::tuple<typename std::remove_const<P>::type...> values(arguments...);
  int index = 0;
  cudaError_t error = cudaSuccess;
  std::apply(
      [&](auto &...value) {
        ((error = error == cudaSuccess ? check(l, ++index, value) : error), ...);
      },
      values);
  if (error != cudaSuccess) return error;
  return enqueue(l, [kernel, values] { std::apply(kernel, values); });
}

/* --- shuffles --- */

struct lane {
  uint64_t value, result;
  int from; /* lane whose value this one takes, or -1 for its own */
};

void exchange(place at, unsigned mask, void **all);
void vote(place at, unsigned mask, void **all);

inline int lane_index() {
  return (int)((threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)) % 32U);
}

template <typename T>
inline T take(place at, unsigned mask, T value, int from) {
  static_assert(sizeof(T) <= 8 && std::is_trivially_copyable<T>::value, "no value of a register");
  lane mine = {0, 0, from};
  memcpy(&mine.value, &value, sizeof value);
  meet_warp(at, meeting::shuffle, mask, &mine, exchange);
  memcpy(&value, &mine.result, sizeof value);
  return value;
}

template <typename T>
inline T shfl(place at, unsigned mask, T value, int source, int width = 32) {
  const int own = lane_index();
  return take(at, mask, value, (own & ~(width - 1)) + (source & (width - 1)));
}

template <typename T>
inline T shfl_up(place at, unsigned mask, T value, unsigned delta, int width = 32) {
  const int own = lane_index(), in_group = own & (width - 1);
  return take(at, mask, value, (int)delta > in_group ? -1 : own - (int)delta);
}

template <typename T>
inline T shfl_down(place at, unsigned mask, T value, unsigned delta, int width = 32) {
  const int own = lane_index(), in_group = own & (width - 1);
  return take(at, mask, value, in_group + (int)delta >= width ? -1 : own + (int)delta);
}

template <typename T>
inline T shfl_xor(place at, unsigned mask, T value, int bits, int width = 32) {
  const int own = lane_index(), from = own ^ bits;
  const int end = (own & ~(width - 1)) + width; /* later groups are out of reach */
  return take(at, mask, value, from >= end ? -1 : from);
}

inline unsigned ballot(place at, unsigned mask, int predicate) {
  lane mine = {(uint64_t)(predicate != 0), 0, -1};
  meet_warp(at, meeting::ballot, mask, &mine, vote);
  return (unsigned)mine.result;
}

}  // namespace mr_host
#pragma GCC visibility pop

#define MR_HOST_HERE (mr_host::place{__FILE__, __LINE__})
#define __syncthreads() mr_host::meet_block(MR_HOST_HERE)
#define __syncwarp(...) \
  mr_host::meet_warp(MR_HOST_HERE, mr_host::meeting::sync, mr_host::mask_of(__VA_ARGS__), 0, 0)
#define __shfl_sync(...) mr_host::shfl(MR_HOST_HERE, __VA_ARGS__)
#define __shfl_up_sync(...) mr_host::shfl_up(MR_HOST_HERE, __VA_ARGS__)
#define __shfl_down_sync(...) mr_host::shfl_down(MR_HOST_HERE, __VA_ARGS__)
#define __shfl_xor_sync(...) mr_host::shfl_xor(MR_HOST_HERE, __VA_ARGS__)
#define __ballot_sync(mask, predicate) mr_host::ballot(MR_HOST_HERE, mask, predicate)
#define __any_sync(mask, predicate) (mr_host::ballot(MR_HOST_HERE, mask, predicate) != 0)
#define __all_sync(mask, predicate) (mr_host::ballot(MR_HOST_HERE, mask, !(predicate)) == 0)

namespace mr_host {
inline unsigned mask_of(unsigned mask = 0xffffffffU) { return mask; }
}  // namespace mr_host

/* What kernels/cuda/cuda.h makes its macros of. */
#define MR_HOST_SHARED(type, name, extents) \
  typedef type name##_shared extents;       \
  static const char name##_key = 0;         \
  name##_shared &name =                     \
      *(name##_shared *)mr_host::shared(&name##_key, sizeof(name##_shared), MR_HOST_HERE)
#define MR_HOST_SHARED_DYNAMIC(type, name) type *name = (type *)mr_host::shared_dynamic()
#define MR_HOST_LAUNCH(kernel, grid, block, shared_bytes, stream, ...)                   \
  mr_host::start(mr_host::launch{#kernel, 0, grid, block, shared_bytes, stream}, kernel, \
                 __VA_ARGS__)

#endif
