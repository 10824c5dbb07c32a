/* Random numbers that depend on what they are drawn for, never on when or by which thread:
 * Philox 4x32-10 (kernels/philox.h) under keys made from a seed and a stream's number. Fills,
 * ranks' own streams and dropout use different keys, so equal numbers never meet. */
#ifndef MR_TENSOR_RANDOM_H
#define MR_TENSOR_RANDOM_H

#include <stdint.h>

#include "tensor/tensor.h"

/* Fills a real tensor with draws of the normal distribution. Element i depends on (seed, stream,
 * i, mean, deviation) only. Values are rounded to f32 in either dtype, so that an f64 tensor
 * equals the f32 one. MR_ERROR_ARGUMENT on integers, or unless mean and deviation are finite and
 * deviation is at least 0. */
mr_status mr_tensor_fill_normal(mr_tensor *tensor, double mean, double deviation, uint64_t seed,
                                uint64_t stream);

/* The same with draws from low up to but not including high (low itself when they are equal). */
mr_status mr_tensor_fill_uniform(mr_tensor *tensor, double low, double high, uint64_t seed,
                                 uint64_t stream);

/* A sequence of draws: a rank's own, or a generator of plans. A value; copy it freely. */
typedef struct mr_stream {
  uint64_t seed, id;
  uint64_t position; /* words drawn so far */
} mr_stream;

mr_stream mr_stream_begin(uint64_t seed, uint64_t id);

/* The next 32 random bits. One word. */
uint32_t mr_stream_next(mr_stream *stream);
/* A multiple of 2^-53 in [0, 1). Two words. */
double mr_stream_uniform(mr_stream *stream);
/* An integer in 0 .. n - 1, each with the same probability; n is at least 1. Two words, and two
 * more each time that the draw is thrown away (never, if n is a power of two). */
int64_t mr_stream_integer(mr_stream *stream, int64_t n);
/* A draw of the normal distribution with mean 0 and deviation 1. Four words. */
double mr_stream_normal(mr_stream *stream);

enum { MR_STREAM_TEXT = 80 };

/* The state as text, "philox SEED ID POSITION". */
void mr_stream_save(const mr_stream *stream, char text[MR_STREAM_TEXT]);
/* Continues from a saved state. MR_ERROR_DAMAGED when the text is none; the stream then stays. */
mr_status mr_stream_restore(mr_stream *stream, const char *text);

#endif
