/* bf16 on the host: the upper half of a float. Rounded to nearest, ties to even; every NaN becomes
 * 0x7fff, as on NVIDIA's GPUs, so that bits do not depend on the device. */
#ifndef MR_BF16_H
#define MR_BF16_H

#include <math.h>
#include <stdint.h>
#include <string.h>

typedef uint16_t mr_bf16;

static inline uint32_t mr_bf16_bits(float x) {
  uint32_t bits = 0;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}

static inline float mr_bf16_to_f32(mr_bf16 x) {
  const uint32_t bits = (uint32_t)x << 16;
  float value = 0;
  memcpy(&value, &bits, sizeof value);
  return value;
}

static inline mr_bf16 mr_bf16_round(uint32_t bits) {
  return (mr_bf16)((bits + 0x7fffU + (bits >> 16 & 1U)) >> 16);
}

static inline mr_bf16 mr_bf16_from_f32(float x) {
  return x != x ? 0x7fff : mr_bf16_round(mr_bf16_bits(x));
}

/* In one rounding: the float between is rounded to odd, so that it is never a tie that x is not
 * (Boldo and Melquiond, "Emulation of FMA and correctly rounded sums", 2008). */
static inline mr_bf16 mr_bf16_from_f64(double x) {
  if (x != x) return 0x7fff;
  const float near = (float)x;
  uint32_t bits = mr_bf16_bits(near);
  if ((double)near == x) return mr_bf16_round(bits);
  if (fabs((double)near) > fabs(x)) bits--;
  return mr_bf16_round(bits | 1U);
}

#endif
