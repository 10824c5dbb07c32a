/* Attention by tiles, with a running softmax (Dao, Fu, Ermon, Rudra, Ré: "FlashAttention", 2022).
 *
 * A tile is LANES queries by KEYS keys of one head of one sequence. It lies key by key: line j
 * holds one real for each query, so maxima, exponentials and sums over keys go line by line, and
 * keys and values are read where they are. Queries (and what has their shape) are turned into
 * lines by channel once per tile row. Nothing larger than a tile row is ever stored, and tiles
 * beyond the causal diagonal are never visited. */
#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <string.h>
#include <tgmath.h>

#include "kernels/cpu/lanes.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/rows.h"
#include "kernels/cpu/vector_math.h"

enum { KEYS = 64 }; /* of a tile */

/* One head of one sequence. Query i lies at q + i * q_stride, and so on; out, dout and lse have
 * out_stride and lse_stride between rows. Gradients have the strides of what they belong to. */
typedef struct head {
  int64_t length, size;
  int causal;
  int64_t q_stride, k_stride, v_stride, out_stride, lse_stride;
  const real *q, *k, *v;
  real *out, *lse;
  const real *dout;
  real *dq, *dk, *dv;
} head;

/* Queries first .. first + count - 1 of a head against keys key .. key + keys - 1. */
typedef struct tile {
  int64_t first, count, key, keys;
} tile;

static int64_t keys_for(const head *h, const tile *t) {
  const int64_t visible = h->causal ? t->first + t->count : h->length;
  return mr_min(KEYS, visible - t->key);
}

/* line[c][i] = factor x[i * stride + c] for i < count and c < size, 0 for the other lanes */
static void to_lines(int64_t count, int64_t size, real factor, const real *restrict x,
                     int64_t stride, real (*restrict line)[LANES]) {
  for (int64_t c = 0; c < size; c++) {
    for (int64_t i = 0; i < count; i++) line[c][i] = factor * x[i * stride + c];
    for (int64_t i = count; i < LANES; i++) line[c][i] = 0;
  }
}

/* x[(first + i) * stride + c] = line[c][i] factor[i] for the queries of a tile, or += if `add` */
static void from_lines(const tile *t, int64_t size, real (*restrict line)[LANES],
                       const real *restrict factor, real *restrict x, int64_t stride, int add) {
  real *rows = x + t->first * stride;
  for (int64_t c = 0; c < size; c++) {
    for (int64_t i = 0; i < t->count; i++) {
      const real value = line[c][i] * factor[i];
      rows[i * stride + c] = add ? rows[i * stride + c] + value : value;
    }
  }
}

/* s[j][i] = score of query i and key j; -inf where the key comes after the query */
static void score(const head *h, const tile *t, real (*restrict q)[LANES],
                  real (*restrict s)[LANES]) {
  const real *keys = h->k + t->key * h->k_stride;
  multiply_lines(
      t->keys, (line_product){h->size, {keys, h->k_stride, 1}, q[0], LANES, s[0], LANES, .add = 0});
  if (!h->causal) return;
  for (int64_t j = mr_max(0, t->first - t->key); j < t->keys; j++) {
    for (int64_t i = 0; i < LANES; i++) {
      if (t->key + j > t->first + i) s[j][i] = -(real)INFINITY;
    }
  }
}

/* What the running softmax knows of each query so far. */
typedef struct running {
  real highest[LANES], sum[LANES];
} running;

/* s becomes exp(s - highest); o, the output so far, is brought to the new highest. */
static void soften(int64_t keys, int64_t size, running *restrict r, real (*restrict s)[LANES],
                   real (*restrict o)[LANES]) {
  real highest[LANES], factor[LANES];
  memcpy(highest, r->highest, sizeof highest);
  for (int64_t j = 0; j < keys; j++) {
    for (int i = 0; i < LANES; i++) highest[i] = s[j][i] > highest[i] ? s[j][i] : highest[i];
  }
  for (int i = 0; i < LANES; i++) {
    factor[i] = mr_exp(r->highest[i] - highest[i]);
    r->highest[i] = highest[i];
    r->sum[i] *= factor[i];
  }
  for (int64_t j = 0; j < keys; j++) {
    for (int i = 0; i < LANES; i++) {
      s[j][i] = mr_exp(s[j][i] - highest[i]);
      r->sum[i] += s[j][i];
    }
  }
  for (int64_t c = 0; c < size; c++) {
    for (int i = 0; i < LANES; i++) o[c][i] *= factor[i];
  }
}

static void attend_queries(const head *h, tile t) {
  real q[MR_HEAD_SIZE_MAX][LANES], o[MR_HEAD_SIZE_MAX][LANES], s[KEYS][LANES];
  real share[LANES];
  running r;
  for (int i = 0; i < LANES; i++) {
    r.highest[i] = -(real)INFINITY;
    r.sum[i] = 0;
  }
  memset(o, 0, (size_t)h->size * sizeof o[0]);
  to_lines(t.count, h->size, 1 / sqrt((real)h->size), h->q + t.first * h->q_stride, h->q_stride, q);
  for (t.key = 0; (t.keys = keys_for(h, &t)) > 0; t.key += KEYS) {
    score(h, &t, q, s);
    soften(t.keys, h->size, &r, s, o);
    const real *values = h->v + t.key * h->v_stride;
    multiply_lines(
        h->size,
        (line_product){t.keys, {values, 1, h->v_stride}, s[0], LANES, o[0], LANES, .add = 1});
  }
  for (int i = 0; i < LANES; i++) share[i] = 1 / r.sum[i];
  from_lines(&t, h->size, o, share, h->out, h->out_stride, 0);
  for (int64_t i = 0; i < t.count; i++) {
    h->lse[(t.first + i) * h->lse_stride] = r.highest[i] + log(r.sum[i]);
  }
}

/* What backward keeps for a tile row: queries and dout as lines, dq as lines, and by query the
 * lse and the product of out and dout. */
typedef struct row_state {
  real q[MR_HEAD_SIZE_MAX][LANES], dout[MR_HEAD_SIZE_MAX][LANES], dq[MR_HEAD_SIZE_MAX][LANES];
  real lse[LANES], along[LANES];
} row_state;

static void prepare_row(const head *h, const tile *t, row_state *w) {
  const real *dout = h->dout + t->first * h->out_stride;
  to_lines(t->count, h->size, 1 / sqrt((real)h->size), h->q + t->first * h->q_stride, h->q_stride,
           w->q);
  to_lines(t->count, h->size, 1, dout, h->out_stride, w->dout);
  memset(w->dq, 0, (size_t)h->size * sizeof w->dq[0]);
  for (int64_t i = 0; i < LANES; i++) {
    real along = 0;
    const int used = i < t->count;
    if (used) {
      const real *out = h->out + (t->first + i) * h->out_stride;
      const real *up = dout + i * h->out_stride;
      for (int64_t c = 0; c < h->size; c++) along += out[c] * up[c];
    }
    w->along[i] = along;
    w->lse[i] = used ? h->lse[(t->first + i) * h->lse_stride] : 0;
  }
}

/* p = probabilities, ds = gradient of the scores, times the score scale */
static void score_gradient(const head *h, const tile *t, row_state *w, real (*restrict p)[LANES],
                           real (*restrict ds)[LANES]) {
  const real scale = 1 / sqrt((real)h->size);
  const real *values = h->v + t->key * h->v_stride;
  score(h, t, w->q, p);
  multiply_lines(
      t->keys,
      (line_product){h->size, {values, h->v_stride, 1}, w->dout[0], LANES, ds[0], LANES, .add = 0});
  /* The analyzer does not see that multiply_lines writes every line. */
  for (int64_t j = 0; j < t->keys; j++) {
    for (int i = 0; i < LANES; i++) {
      /* NOLINTNEXTLINE(clang-analyzer-core.UndefinedBinaryOperatorResult) */
      p[j][i] = mr_exp(p[j][i] - w->lse[i]);
      /* NOLINTNEXTLINE(clang-analyzer-core.UndefinedBinaryOperatorResult) */
      ds[j][i] = p[j][i] * (ds[j][i] - w->along[i]) * scale;
    }
  }
}

/* dx[j] += sum over the queries of weights[j][i] x[i], j over the tile's keys; x and dx have rows
 * of h->size reals at their strides. Channels beyond the last full line go through a copy. */
static void to_keys(const head *h, const tile *t, real (*restrict weights)[LANES], const real *x,
                    int64_t x_stride, real *dx, int64_t dx_stride) {
  const scalars a = {weights[0], LANES, 1};
  int64_t c = 0;
  for (; c + LANES <= h->size; c += LANES) {
    multiply_lines(t->keys,
                   (line_product){t->count, a, x + c, x_stride, dx + c, dx_stride, .add = 1});
  }
  if (c == h->size) return;
  const int64_t rest = h->size - c;
  real from[LANES][LANES] = {{0}}, to[KEYS][LANES];
  for (int64_t i = 0; i < t->count; i++) {
    for (int64_t j = 0; j < rest; j++) from[i][j] = x[i * x_stride + c + j];
  }
  multiply_lines(t->keys, (line_product){t->count, a, from[0], LANES, to[0], LANES, .add = 0});
  for (int64_t i = 0; i < t->keys; i++) {
    for (int64_t j = 0; j < rest; j++) dx[i * dx_stride + c + j] += to[i][j];
  }
}

static void attend_queries_backward(const head *h, tile t) {
  row_state w;
  real p[KEYS][LANES], ds[KEYS][LANES];
  prepare_row(h, &t, &w);
  for (t.key = 0; (t.keys = keys_for(h, &t)) > 0; t.key += KEYS) {
    score_gradient(h, &t, &w, p, ds);
    if (h->dq != NULL) {
      const real *keys = h->k + t.key * h->k_stride;
      multiply_lines(
          h->size,
          (line_product){t.keys, {keys, 1, h->k_stride}, ds[0], LANES, w.dq[0], LANES, .add = 1});
    }
    if (h->dk != NULL) {
      to_keys(h, &t, ds, h->q + t.first * h->q_stride, h->q_stride, h->dk + t.key * h->k_stride,
              h->k_stride);
    }
    if (h->dv != NULL) {
      to_keys(h, &t, p, h->dout + t.first * h->out_stride, h->out_stride,
              h->dv + t.key * h->v_stride, h->v_stride);
    }
  }
  real ones[LANES];
  for (int i = 0; i < LANES; i++) ones[i] = 1;
  if (h->dq != NULL) from_lines(&t, h->size, w.dq, ones, h->dq, h->q_stride, 1);
}

/* The part of the pointers in `all` that belongs to head i of sequence s. */
static head part(const mr_attention *a, const head *all, int64_t s, int64_t i) {
  const int64_t row = a->starts[s], size = a->head_size;
  head h = *all;
  h.length = a->lengths[s];
  h.q += row * h.q_stride + i * size;
  h.k += row * h.k_stride + i * size;
  h.v += row * h.v_stride + i * size;
  h.out += row * h.out_stride + i * size;
  h.lse += row * h.lse_stride + i;
  if (h.dout != NULL) h.dout += row * h.out_stride + i * size;
  if (h.dq != NULL) h.dq += row * h.q_stride + i * size;
  if (h.dk != NULL) h.dk += row * h.k_stride + i * size;
  if (h.dv != NULL) h.dv += row * h.v_stride + i * size;
  return h;
}

static int64_t covered_rows(const mr_attention *a) {
  int64_t rows = 0;
  for (int64_t s = 0; s < a->sequences; s++) rows += a->lengths[s];
  return rows;
}

/* Threads for the work in `a`, which grows with the rows seen by each row. */
static int threads_for(const mr_launch *l, const mr_attention *a) {
  int64_t work = 0;
  for (int64_t s = 0; s < a->sequences; s++) work += a->lengths[s] * a->lengths[s];
  return mr_threads(l, work * a->heads * (a->head_size + 8) / 8);
}

static head whole(const mr_attention *a, const void *q, const void *k, const void *v) {
  return (head){.size = a->head_size,
                .causal = a->causal,
                .q_stride = a->q_stride,
                .k_stride = a->k_stride,
                .v_stride = a->v_stride,
                .out_stride = a->heads * a->head_size,
                .lse_stride = a->heads,
                .q = q,
                .k = k,
                .v = v};
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
#pragma omp parallel for collapse(2) num_threads(threads_for(l, a)) schedule(dynamic)
  for (int64_t s = 0; s < a->sequences; s++) {
    for (int64_t i = 0; i < a->heads; i++) {
      const head h = part(a, &all, s, i);
      for (int64_t first = 0; first < h.length; first += LANES) {
        attend_queries(&h, (tile){.first = first, .count = mr_min(LANES, h.length - first)});
      }
    }
  }
  return 0;
}

int MR_ROW(attention_backward)(const mr_launch *l, const mr_attention *a, const void *q,
                               const void *k, const void *v, const void *out, const void *lse,
                               const void *dout, void *dq, void *dk, void *dv) {
  if (a->head_size > MR_HEAD_SIZE_MAX) return ERANGE;
  head all = whole(a, q, k, v);
  all.out = (real *)out;
  all.lse = (real *)lse;
  all.dout = dout;
  all.dq = dq;
  all.dk = dk;
  all.dv = dv;
#pragma omp parallel for collapse(2) num_threads(threads_for(l, a)) schedule(dynamic)
  for (int64_t s = 0; s < a->sequences; s++) {
    for (int64_t i = 0; i < a->heads; i++) {
      const head h = part(a, &all, s, i);
      for (int64_t first = 0; first < h.length; first += LANES) {
        attend_queries_backward(&h,
                                (tile){.first = first, .count = mr_min(LANES, h.length - first)});
      }
    }
  }
  return 0;
}
