/* A draw is one block of four words: two uniform numbers of 53 bits, hence two normal ones.
 * Key and counter hold seed, stream and block number in full; a constant per purpose is mixed into
 * the key. */
#include "tensor/random.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/bf16.h"
#include "kernels/philox.h"

enum { FILLS = 0x46494C4C, STREAMS = 0x5354524D, PARALLEL_FROM = 16384 };

typedef struct block {
  uint32_t word[4];
} block;

static block draw(uint32_t purpose, uint64_t seed, uint64_t stream, uint64_t number) {
  const uint32_t key[2] = {(uint32_t)seed, (uint32_t)stream ^ purpose};
  const uint32_t counter[4] = {(uint32_t)number, (uint32_t)(number >> 32), (uint32_t)(seed >> 32),
                               (uint32_t)(stream >> 32)};
  block made;
  mr_philox(key, counter, made.word);
  return made;
}

static double uniform_of(uint32_t high, uint32_t low) {
  return (double)(((uint64_t)high << 32 | low) >> 11) * 0x1p-53;
}

/* Box and Muller: two independent normal numbers from two uniform ones. */
static void normal_pair(double u, double v, double pair[2]) {
  const double two_pi = 6.283185307179586;
  double radius = sqrt(-2.0 * log(1.0 - u)); /* 1 - u is never 0 */
  pair[0] = radius * cos(two_pi * v);
  pair[1] = radius * sin(two_pi * v);
}

/* What one fill draws: `pair` makes two elements from one block. */
typedef struct fill {
  void (*pair)(const struct fill *self, const block *words, float pair[2]);
  double a, b; /* mean and deviation, or low and high */
  uint64_t seed, stream;
} fill;

static void draw_normal(const fill *self, const block *words, float pair[2]) {
  double z[2];
  const uint32_t *w = words->word;
  normal_pair(uniform_of(w[0], w[1]), uniform_of(w[2], w[3]), z);
  for (int i = 0; i < 2; i++) pair[i] = (float)(self->a + self->b * z[i]);
}

static void draw_uniform(const fill *self, const block *words, float pair[2]) {
  for (int64_t i = 0; i < 2; i++) {
    double u = uniform_of(words->word[2 * i], words->word[2 * i + 1]);
    pair[i] = (float)(self->a + (self->b - self->a) * u);
    if (self->a < self->b && (double)pair[i] >= self->b) pair[i] = nextafterf(pair[i], -INFINITY);
  }
}

static void store(void *host, mr_dtype dtype, int64_t i, float value) {
  if (dtype == MR_F32)
    ((float *)host)[i] = value;
  else if (dtype == MR_BF16)
    ((mr_bf16 *)host)[i] = mr_bf16_from_f32(value);
  else
    ((double *)host)[i] = (double)value;
}

static void fill_host(const fill *what, int threads, int64_t count, mr_dtype dtype, void *host) {
  int used = count < PARALLEL_FROM ? 1 : threads;
  int64_t blocks = count / 2 + count % 2;
#pragma omp parallel for schedule(static) num_threads(used)
  for (int64_t i = 0; i < blocks; i++) {
    float pair[2];
    block words = draw(FILLS, what->seed, what->stream, (uint64_t)i);
    what->pair(what, &words, pair);
    store(host, dtype, 2 * i, pair[0]);
    if (2 * i + 1 < count) store(host, dtype, 2 * i + 1, pair[1]);
  }
  (void)used;
  (void)threads;
}

static mr_status fill_tensor(mr_tensor *tensor, const fill *what) {
  MR_TRY(mr_tensor_readable(tensor, "the target of a random fill"));
  if (!mr_dtype_is_real(tensor->dtype))
    return mr_fail(MR_ERROR_ARGUMENT, "a random fill needs f32, f64 or bf16, got %s",
                   mr_dtype_name(tensor->dtype));
  mr_device *device = mr_tensor_device(tensor);
  if (device->host_memory) {
    mr_tensor_changed(tensor);
    fill_host(what, device->launch.threads, tensor->count, tensor->dtype, mr_tensor_data(tensor));
    return MR_OK;
  }
  void *host = NULL;
  MR_TRY(mr_memory_allocate_raw(mr_tensor_bytes(tensor), &host));
  fill_host(what, device->launch.threads, tensor->count, tensor->dtype, host);
  mr_status status = mr_tensor_write(tensor, host);
  mr_memory_release(host);
  return status;
}

mr_status mr_tensor_fill_normal(mr_tensor *tensor, double mean, double deviation, uint64_t seed,
                                uint64_t stream) {
  if (!isfinite(mean) || !isfinite(deviation) || deviation < 0)
    return mr_fail(MR_ERROR_ARGUMENT,
                   "a normal fill needs a finite mean and a finite deviation of at least 0, got "
                   "%g and %g",
                   mean, deviation);
  return fill_tensor(tensor, &(fill){draw_normal, mean, deviation, seed, stream});
}

mr_status mr_tensor_fill_uniform(mr_tensor *tensor, double low, double high, uint64_t seed,
                                 uint64_t stream) {
  if (!isfinite(low) || !isfinite(high) || low > high)
    return mr_fail(MR_ERROR_ARGUMENT,
                   "a uniform fill needs finite bounds, the lower one first, got %g and %g", low,
                   high);
  return fill_tensor(tensor, &(fill){draw_uniform, low, high, seed, stream});
}

mr_stream mr_stream_begin(uint64_t seed, uint64_t id) {
  return (mr_stream){.seed = seed, .id = id};
}

uint32_t mr_stream_next(mr_stream *stream) {
  uint64_t position = stream->position++;
  return draw(STREAMS, stream->seed, stream->id, position / 4).word[position % 4];
}

static uint64_t next_64(mr_stream *stream) {
  uint64_t high = mr_stream_next(stream);
  return high << 32 | mr_stream_next(stream);
}

double mr_stream_uniform(mr_stream *stream) { return (double)(next_64(stream) >> 11) * 0x1p-53; }

/* The 2^64 values fall into runs of n; those of the last, incomplete run are drawn again. */
int64_t mr_stream_integer(mr_stream *stream, int64_t n) {
  uint64_t range = (uint64_t)n, excess = (UINT64_MAX % range + 1) % range, value;
  do value = next_64(stream);
  while (value > UINT64_MAX - excess);
  return (int64_t)(value % range);
}

double mr_stream_normal(mr_stream *stream) {
  double pair[2], u = mr_stream_uniform(stream), v = mr_stream_uniform(stream);
  normal_pair(u, v, pair);
  return pair[0];
}

void mr_stream_save(const mr_stream *stream, char text[MR_STREAM_TEXT]) {
  (void)snprintf(text, MR_STREAM_TEXT, "philox %" PRIu64 " %" PRIu64 " %" PRIu64, stream->seed,
                 stream->id, stream->position);
}

/* Reads " DIGITS" at *text and moves it on; 0 when there is none. */
static int read_number(const char **text, uint64_t *value) {
  char *end = NULL;
  if ((*text)[0] != ' ' || (*text)[1] < '0' || (*text)[1] > '9') return 0;
  errno = 0;
  unsigned long long number = strtoull(*text + 1, &end, 10);
  *value = number;
  *text = end;
  return errno == 0;
}

mr_status mr_stream_restore(mr_stream *stream, const char *text) {
  static const char head[] = "philox";
  mr_stream found = {0};
  const char *rest = strncmp(text, head, strlen(head)) == 0 ? text + strlen(head) : "";
  if (!read_number(&rest, &found.seed) || !read_number(&rest, &found.id) ||
      !read_number(&rest, &found.position) || *rest != '\0')
    return mr_fail(MR_ERROR_DAMAGED,
                   "the state of a random stream reads 'philox SEED ID POSITION', got '%s'", text);
  *stream = found;
  return MR_OK;
}
