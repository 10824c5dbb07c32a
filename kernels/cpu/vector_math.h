/* Functions of one real, free of branches and tables, so that a loop over them becomes vector
 * code under any instruction set. */
#ifndef MR_CPU_VECTOR_MATH_H
#define MR_CPU_VECTOR_MATH_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "kernels/cpu/real.h"

/* x = n ln 2 + r with |r| <= ln 2 / 2, ln 2 in two parts (Cody and Waite, "Software manual for
 * the elementary functions", 1980), the Taylor series for e^r, then e^r 2^n. n is rounded, and
 * 2^n assembled, in the low bits of a sum with a large number. The factor applied is 2^(n - 1), to
 * twice e^r: so the largest results are still finite, and those below the second normal binade
 * (2.4e-38, 4.5e-308) are 0. Error below 1.5 ulp; inf gives inf, NaN gives NaN. */
#if MR_REAL_BITS == 64

/* 2^n for an integer n in [-1022, 1023]; 0 for -1023 */
static inline double mr_power_of_two(double n) {
  const double sum = n + (0x1.8p52 + 1023);
  uint64_t bits;
  memcpy(&bits, &sum, sizeof bits);
  bits <<= 52;
  double power;
  memcpy(&power, &bits, sizeof power);
  return power;
}

static inline double mr_exp(double x) {
  x = x < -708.5 ? -708.5 : x;
  x = x > 710.0 ? 710.0 : x;
  const double n = (x * 0x1.71547652b82fep0 + 0x1.8p52) - 0x1.8p52;
  const double r = (x - n * 0x1.62e42fefa3800p-1) - n * 0x1.ef35793c76730p-45;
  double p = 1.0 / 6227020800;
  p = p * r + 1.0 / 479001600;
  p = p * r + 1.0 / 39916800;
  p = p * r + 1.0 / 3628800;
  p = p * r + 1.0 / 362880;
  p = p * r + 1.0 / 40320;
  p = p * r + 1.0 / 5040;
  p = p * r + 1.0 / 720;
  p = p * r + 1.0 / 120;
  p = p * r + 1.0 / 24;
  p = p * r + 1.0 / 6;
  p = p * r + 0.5;
  p = p * (r * r) + r + 1.0;
  return (p + p) * mr_power_of_two(n - 1);
}

/* e^x for an x that is at most about 0, as softmax has it. */
static inline double mr_exp_below(double x) { return mr_exp(x); }

#else

/* 2^n for an integer n in [-126, 127]; 0 for -127 */
static inline float mr_power_of_two(float n) {
  const float sum = n + (0x1.8p23F + 127);
  uint32_t bits;
  memcpy(&bits, &sum, sizeof bits);
  bits <<= 23;
  float power;
  memcpy(&power, &bits, sizeof power);
  return power;
}

static inline float mr_exp(float x) {
  x = x < -87.5F ? -87.5F : x;
  x = x > 89.0F ? 89.0F : x;
  const float n = (x * 0x1.715476p0F + 0x1.8p23F) - 0x1.8p23F;
  const float r = (x - n * 0x1.62e400p-1F) - n * 0x1.7f7d1cp-20F;
  float p = 1.0F / 5040;
  p = p * r + 1.0F / 720;
  p = p * r + 1.0F / 120;
  p = p * r + 1.0F / 24;
  p = p * r + 1.0F / 6;
  p = p * r + 0.5F;
  p = p * (r * r) + r + 1.0F;
  return (p + p) * mr_power_of_two(n - 1);
}

/* e^x for an x that is at most about 0 (88 is the end), as softmax has it, in half the steps:
 * there is one end to guard, and a polynomial fitted to e^r (the weighted least squares of Lawson,
 * repeated to an error of 3.1e-9) needs one term less than a series. Error below 1.5 ulp; below
 * -87.7 it is 0; NaN gives NaN. */
static inline float mr_exp_below(float x) {
  x = x < -88.0F ? -88.0F : x;
  const float sum = x * 0x1.715476p0F + (0x1.8p23F + 127);
  const float n = sum - (0x1.8p23F + 127);
  const float r = (x - n * 0x1.62e400p-1F) - n * 0x1.7f7d1cp-20F;
  float p = 0x1.6a23d0p-10F;
  p = p * r + 0x1.123a20p-7F;
  p = p * r + 0x1.5558f2p-5F;
  p = p * r + 0x1.555492p-3F;
  p = p * r + 0x1.fffffcp-2F;
  p = p * r + 1.0F;
  p = p * r + 1.0F;
  uint32_t bits;
  memcpy(&bits, &sum, sizeof bits);
  bits <<= 23;
  float power;
  memcpy(&power, &bits, sizeof power);
  return p * power;
}

#endif

/* 1 / (1 + e^-x): 0 and 1 at the far ends */
static inline real mr_sigmoid(real x) { return 1 / (1 + mr_exp(-x)); }

#endif
