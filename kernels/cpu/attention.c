/* Attention by tiles, with a running softmax (Dao, Fu, Ermon, Rudra, Ré: "FlashAttention", 2022).
 *
 * Nothing larger than a block of tile rows is ever stored, and tiles beyond the causal diagonal are
 * never visited. Rows, and what is summed over keys, are in an order that follows from the lengths
 * alone, whoever works on a block. */
#include "kernels/cpu/attention.h"

#include <errno.h>
#include <stddef.h>

#include "kernels/cpu/rows.h"
#include "kernels/cpu/vector_math.h"

/* What the running softmax knows of each query of a tile row so far. */
typedef struct running {
  real highest[LANES], sum[LANES];
} running;

static void begin(running *r) {
  for (int i = 0; i < LANES; i++) {
    r->highest[i] = -(real)INFINITY;
    r->sum[i] = 0;
  }
}

/* highest[i] = the greatest of highest[i] and s[j][i] for all j < keys; every other line apart, so
 * that one comparison does not wait for the one before */
static void raise_highest(int64_t keys, real (*restrict s)[LANES], real *restrict highest) {
  real other[LANES];
  memcpy(other, highest, sizeof other);
  int64_t j = 0;
  /* The analyzer does not see that every line of the tile was written. */
  for (; j + 2 <= keys; j += 2) {
    /* NOLINTNEXTLINE(clang-analyzer-core.UndefinedBinaryOperatorResult) */
    for (int i = 0; i < LANES; i++) highest[i] = s[j][i] > highest[i] ? s[j][i] : highest[i];
    /* NOLINTNEXTLINE(clang-analyzer-core.UndefinedBinaryOperatorResult) */
    for (int i = 0; i < LANES; i++) other[i] = s[j + 1][i] > other[i] ? s[j + 1][i] : other[i];
  }
  for (; j < keys; j++) {
    /* NOLINTNEXTLINE(clang-analyzer-core.UndefinedBinaryOperatorResult) */
    for (int i = 0; i < LANES; i++) highest[i] = s[j][i] > highest[i] ? s[j][i] : highest[i];
  }
  for (int i = 0; i < LANES; i++) highest[i] = other[i] > highest[i] ? other[i] : highest[i];
}

/* s becomes exp(s - highest), and factor what turns earlier sums into such of the new highest. */
static void soften(int64_t keys, running *restrict r, real (*restrict s)[LANES],
                   real *restrict factor) {
  real highest[LANES];
  memcpy(highest, r->highest, sizeof highest);
  raise_highest(keys, s, highest);
  for (int i = 0; i < LANES; i++) {
    factor[i] = mr_exp_below(r->highest[i] - highest[i]);
    r->highest[i] = highest[i];
    r->sum[i] *= factor[i];
  }
  for (int64_t j = 0; j < keys; j++) {
    for (int i = 0; i < LANES; i++) {
      s[j][i] = mr_exp_below(s[j][i] - highest[i]);
      r->sum[i] += s[j][i];
    }
  }
}

/* y[i] = factor[i] x[i], for rows of `size` reals */
static void scale_rows(int64_t count, int64_t size, const real *restrict factor, const real *x,
                       int64_t x_stride, real *y, int64_t y_stride) {
  for (int64_t i = 0; i < count; i++) {
    for (int64_t c = 0; c < size; c++) y[i * y_stride + c] = factor[i] * x[i * x_stride + c];
  }
}

/* Takes the tile's keys and values into o, the rows of output so far, and into r. */
static void attend_tile(const head *h, const tile *t, const real *q, matrix keys, matrix values,
                        running *r, real *o) {
  real s[KEYS][LANES], factor[LANES];
  score(h, t, q, keys, s);
  soften(t->keys, r, s, factor);
  if (t->key > 0) scale_rows(t->count, h->size, factor, o, h->size, o, h->size);
  multiply_rows(
      t->count, h->size,
      (line_product){
          t->keys, {s[0], 1, LANES}, values.x, values.stride, o, h->size, .add = t->key > 0});
}

static void finish_row(const head *h, const tile *t, const running *r, const real *o) {
  real share[LANES];
  for (int i = 0; i < LANES; i++) share[i] = 1 / r->sum[i];
  scale_rows(t->count, h->size, share, o, h->size, h->out + t->first * h->out_stride,
             h->out_stride);
  for (int64_t i = 0; i < t->count; i++) {
    h->lse[(t->first + i) * h->lse_stride] = r->highest[i] + log(r->sum[i]);
  }
}

/* The output of queries from .. to - 1, at most queries_together. */
static void attend(const head *h, int64_t from, int64_t to) {
  real q[ROOM], o[ROOM];
  real k[KEYS * MR_HEAD_SIZE_MAX], v[KEYS * MR_HEAD_SIZE_MAX];
  const int64_t row = LANES * h->size, end = visible_keys(h, to);
  tile tiles[ROWS];
  running r[ROWS];
  int count = 0;
  for (int64_t first = from; first < to; first += LANES, count++) {
    tiles[count] = row_of_tiles(h, first);
    begin(&r[count]);
    to_lines(tiles[count].count, h->size, 1 / sqrt((real)h->size), h->q + first * h->q_stride,
             h->q_stride, (real(*)[LANES])(q + count * row));
  }
  for (int64_t key = 0; key < end; key += KEYS) {
    const int64_t seen = mr_min(KEYS, end - key);
    const matrix keys = gather_rows(h, key, seen, h->k, h->k_stride, k, count == 1);
    const matrix values = gather_rows(h, key, seen, h->v, h->v_stride, v, count == 1);
    for (int i = 0; i < count; i++) {
      if (!set_keys(h, &tiles[i], key)) continue;
      attend_tile(h, &tiles[i], q + i * row, keys, values, &r[i], o + i * row);
    }
  }
  for (int i = 0; i < count; i++) finish_row(h, &tiles[i], &r[i], o + i * row);
}

static int64_t covered_rows(const mr_attention *a) {
  int64_t rows = 0;
  for (int64_t s = 0; s < a->sequences; s++) rows += a->lengths[s];
  return rows;
}

int MR_ROW(attention)(const mr_launch *l, const mr_attention *a, const void *q, const void *k,
                      const void *v, void *out, void *lse) {
  if (a->head_size > MR_HEAD_SIZE_MAX) return ERANGE;
  head all = whole(a, q, k, v);
  all.out = out;
  all.lse = lse;
  if (covered_rows(a) < a->rows) {
    memset(out, 0, (size_t)(a->rows * all.out_stride) * sizeof(real));
    memset(lse, 0, (size_t)(a->rows * a->heads) * sizeof(real));
  }
  const int threads = threads_for(l, a);
  for (int64_t start = 0; start < a->sequences; start += GROUP) {
    const schedule w = share_out(a, start, queries_together(a->head_size));
#pragma omp parallel for num_threads(threads) schedule(dynamic)
    for (int64_t i = 0; i < w.first[w.sequences]; i++) {
      const piece p = piece_of(a, &w, i);
      for (int64_t j = p.head; j < p.head + p.heads; j++) {
        const head h = part(a, &all, p.sequence, j);
        attend(&h, p.from, p.to);
      }
    }
  }
  return 0;
}
