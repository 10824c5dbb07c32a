/* Words, vector types, bf16 and intrinsics of CUDA C++, for the host. See cuda_host.h. */
#ifndef MR_SPEC_HOST_TYPES_H
#define MR_SPEC_HOST_TYPES_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "kernels/bf16.h"

#define __global__
#define __device__
#define __host__
#define __constant__ static
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))

struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
};
struct uint3 {
  unsigned x, y, z;
};
struct alignas(8) float2 {
  float x, y;
};
struct alignas(16) float4 {
  float x, y, z, w;
};
struct alignas(16) double2 {
  double x, y;
};
struct alignas(8) int2 {
  int x, y;
};
struct alignas(16) int4 {
  int x, y, z, w;
};
struct alignas(8) uint2 {
  unsigned x, y;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
inline float2 make_float2(float x, float y) { return {x, y}; }
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
inline double2 make_double2(double x, double y) { return {x, y}; }
inline int2 make_int2(int x, int y) { return {x, y}; }
inline int4 make_int4(int x, int y, int z, int w) { return {x, y, z, w}; }
inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }

/* --- intrinsics --- */

template <typename T>
inline T __ldg(const T *at) {
  return *at;
}
template <typename T>
inline T __ldcs(const T *at) {
  return *at;
}
template <typename T>
inline void __stcs(T *at, T value) {
  *at = value;
}
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __ffsll(long long x) { return __builtin_ffsll(x); }
inline int __clz(int x) { return x == 0 ? 32 : __builtin_clz((unsigned)x); }
inline int __clzll(long long x) { return x == 0 ? 64 : __builtin_clzll((unsigned long long)x); }
inline unsigned __umulhi(unsigned a, unsigned b) {
  return (unsigned)((uint64_t)a * (uint64_t)b >> 32);
}
inline float __expf(float x) { return expf(x); }
inline float __logf(float x) { return logf(x); }
inline float __fdividef(float a, float b) { return a / b; }
inline float __frcp_rn(float x) { return 1 / x; }
inline float __fsqrt_rn(float x) { return sqrtf(x); }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fadd_rn(float a, float b) { return a + b; }
inline float rsqrtf(float x) { return 1 / sqrtf(x); }
inline double rsqrt(double x) { return 1 / sqrt(x); }
inline float rsqrt(float x) { return 1 / sqrtf(x); }
inline unsigned __float_as_uint(float x) {
  unsigned bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}
inline int __float_as_int(float x) { return (int)__float_as_uint(x); }
inline float __uint_as_float(unsigned bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}
inline float __int_as_float(int bits) { return __uint_as_float((unsigned)bits); }

/* min and max of NVIDIA's headers: of a NaN and a number, the number. */
#define MR_HOST_MIN_MAX(type)                               \
  inline type min(type a, type b) { return a < b ? a : b; } \
  inline type max(type a, type b) { return a > b ? a : b; }
MR_HOST_MIN_MAX(int)
MR_HOST_MIN_MAX(unsigned)
MR_HOST_MIN_MAX(long)
MR_HOST_MIN_MAX(unsigned long)
MR_HOST_MIN_MAX(long long)
MR_HOST_MIN_MAX(unsigned long long)
#undef MR_HOST_MIN_MAX
inline float min(float a, float b) { return fminf(a, b); }
inline float max(float a, float b) { return fmaxf(a, b); }
inline double min(double a, double b) { return fmin(a, b); }
inline double max(double a, double b) { return fmax(a, b); }

/* Of integers only: sums of reals by atomics have no fixed order. */
inline int atomicAdd(int *at, int value) {
  const int old = *at;
  *at += value;
  return old;
}
inline unsigned atomicAdd(unsigned *at, unsigned value) {
  const unsigned old = *at;
  *at += value;
  return old;
}
inline void __threadfence() {}
inline void __threadfence_block() {}

/* --- bf16: the upper half of a float, rounded to nearest, ties to even --- */

struct __nv_bfloat16_raw {
  unsigned short x;
};

struct __nv_bfloat16 {
  unsigned short bits;
  __nv_bfloat16() = default;
  __nv_bfloat16(float value) : bits(mr_bf16_from_f32(value)) {}
  explicit __nv_bfloat16(double value) : bits(mr_bf16_from_f64(value)) {}
  explicit __nv_bfloat16(int value) : bits(mr_bf16_from_f64(value)) {}
  __nv_bfloat16(__nv_bfloat16_raw raw) : bits(raw.x) {}
  operator float() const { return __uint_as_float((unsigned)bits << 16); }
};

struct alignas(4) __nv_bfloat162 {
  __nv_bfloat16 x, y;
};

inline __nv_bfloat16 __float2bfloat16(float x) { return __nv_bfloat16(x); }
inline __nv_bfloat16 __float2bfloat16_rn(float x) { return __nv_bfloat16(x); }
inline __nv_bfloat16 __double2bfloat16(double x) { return __nv_bfloat16(x); }
inline float __bfloat162float(__nv_bfloat16 x) { return (float)x; }
inline unsigned short __bfloat16_as_ushort(__nv_bfloat16 x) { return x.bits; }
inline __nv_bfloat16 __ushort_as_bfloat16(unsigned short bits) {
  return __nv_bfloat16(__nv_bfloat16_raw{bits});
}
inline __nv_bfloat162 __floats2bfloat162_rn(float x, float y) {
  return {__nv_bfloat16(x), __nv_bfloat16(y)};
}
inline __nv_bfloat162 __float22bfloat162_rn(float2 v) { return __floats2bfloat162_rn(v.x, v.y); }
inline float2 __bfloat1622float2(__nv_bfloat162 v) { return {(float)v.x, (float)v.y}; }
typedef __nv_bfloat16 nv_bfloat16;
typedef __nv_bfloat162 nv_bfloat162;

#endif
