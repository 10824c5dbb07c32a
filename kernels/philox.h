/* Philox 4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3",
 * SC 2011): a block cipher that turns a key of 2 words and a counter of 4 words into 4 random
 * words. Nothing is stored, so any draw can be made anywhere, in any order, and again.
 *
 * Dropout uses all six words, one for each thing that its mask depends on:
 *
 *   key      (seed, layer)
 *   counter  (update, sequence id, position, channel / 4), and channel % 4 picks the result word
 *
 * so two draws share a word only if all six values are equal, as long as each is below 2^32
 * (channels: 2^34). A value of 64 bits is folded into its word by mr_philox_word: its upper half
 * always counts, but values of 2^32 and above may meet a smaller one. */
#ifndef MR_PHILOX_H
#define MR_PHILOX_H

#include <stdint.h>

#ifdef __CUDACC__
#define MR_PHILOX_INLINE static __host__ __device__ inline
#else
#define MR_PHILOX_INLINE static inline
#endif

/* One word from 64 bits: the value itself below 2^32. */
MR_PHILOX_INLINE uint32_t mr_philox_word(uint64_t value) {
  return (uint32_t)value ^ (uint32_t)(value >> 32) * 0x9E3779B9U;
}

/* Writes the four random words of `counter` under `key`. */
MR_PHILOX_INLINE void mr_philox(const uint32_t key[2], const uint32_t counter[4],
                                uint32_t words[4]) {
  uint32_t k0 = key[0], k1 = key[1];
  uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
  for (int round = 0; round < 10; round++) {
    const uint64_t p0 = (uint64_t)0xD2511F53U * c0;
    const uint64_t p1 = (uint64_t)0xCD9E8D57U * c2;
    c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
    c1 = (uint32_t)p1;
    c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
    c3 = (uint32_t)p0;
    k0 += 0x9E3779B9U;
    k1 += 0xBB67AE85U;
  }
  words[0] = c0;
  words[1] = c1;
  words[2] = c2;
  words[3] = c3;
}

/* A random word below this happens with `probability` in [0, 1), to within 2^-32. */
MR_PHILOX_INLINE uint32_t mr_philox_threshold(double probability) {
  return (uint32_t)(probability * 4294967296.0);
}

#endif
