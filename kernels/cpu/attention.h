/* What attention and its gradient share: heads, tiles, scores, and how the work is shared out.
 *
 * A tile is LANES queries by KEYS keys of one head of one sequence. It lies key by key: line j
 * holds one real for each query, so maxima, exponentials and sums over keys go line by line. A
 * block is up to ROWS tile rows that look at the same keys, which are copied together for them. */
#ifndef MR_CPU_ATTENTION_H
#define MR_CPU_ATTENTION_H

#include <math.h>
#include <stdint.h>
#include <string.h>
#include <tgmath.h>

#include "kernels/cpu/lanes.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/real.h"
#include "kernels/kernels.h"

enum {
  KEYS = DEPTH, /* of a tile */
  ROWS = 8,     /* tile rows of a block */
  QUERIES = ROWS * LANES,
  ROOM = QUERIES * 128, /* reals for something of each query of a block, as lines or as rows */
  GROUP = 512           /* sequences that are shared out at a time */
};

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

/* Rows of the head's size, `stride` apart. */
typedef struct matrix {
  const real *x;
  int64_t stride;
} matrix;

/* Queries of a block of heads of this size: as many as there is room for. */
static inline int64_t queries_together(int64_t size) {
  return size <= 128 ? QUERIES : size <= 256 ? QUERIES / 2 : QUERIES / 4;
}

static inline tile row_of_tiles(const head *h, int64_t first) {
  return (tile){.first = first, .count = mr_min(LANES, h->length - first), .key = 0, .keys = 0};
}

/* Keys that some query before `end` sees. */
static inline int64_t visible_keys(const head *h, int64_t end) {
  return h->causal ? mr_min(end, h->length) : h->length;
}

/* Lets the tile have the keys from `key` on that it sees, at most KEYS; 0 when there are none. */
static inline int set_keys(const head *h, tile *t, int64_t key) {
  t->key = key;
  t->keys = mr_min(KEYS, visible_keys(h, t->first + t->count) - key);
  return t->keys > 0;
}

static inline void copy_rows(int64_t count, int64_t size, const real *restrict x, int64_t x_stride,
                             real *restrict y, int64_t y_stride) {
  for (int64_t i = 0; i < count; i++) {
    const real *from = x + i * x_stride;
    real *to = y + i * y_stride;
    int64_t c = 0;
    for (; c + LANES <= size; c += LANES) memcpy(to + c, from + c, LANES * sizeof(real));
    if (c < size) memcpy(to + c, from + c, (size_t)(size - c) * sizeof(real));
  }
}

/* Rows key .. key + keys - 1 of x, copied together where more than one tile row looks at them. */
static inline matrix gather_rows(const head *h, int64_t key, int64_t keys, const real *x,
                                 int64_t stride, real *copy, int alone) {
  if (alone) return (matrix){x + key * stride, stride};
  copy_rows(keys, h->size, x + key * stride, stride, copy, h->size);
  return (matrix){copy, h->size};
}

/* s[j][i] = score of query i and key j, from queries as lines, scaled; -inf where the key comes
 * after the query */
static inline void score(const head *h, const tile *t, const real *q, matrix keys,
                         real (*restrict s)[LANES]) {
  multiply_lines(
      t->keys, (line_product){h->size, {keys.x, keys.stride, 1}, q, LANES, s[0], LANES, .add = 0});
  if (!h->causal) return;
  for (int64_t j = mr_max(0, t->first - t->key); j < t->keys; j++) {
    for (int64_t i = 0; i < LANES; i++) {
      if (t->key + j > t->first + i) s[j][i] = -(real)INFINITY;
    }
  }
}

/* The part of the pointers in `all` that belongs to head i of sequence s. */
static inline head part(const mr_attention *a, const head *all, int64_t s, int64_t i) {
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

static inline head whole(const mr_attention *a, const void *q, const void *k, const void *v) {
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

/* --- work ------------------------------------------------------------------------------------ */

/* The pieces of work of up to GROUP sequences: of each one, long sequences first, all heads of its
 * last `rows` rows, then of the `rows` before, and so on. */
typedef struct schedule {
  int64_t heads, rows, sequences;
  int64_t order[GROUP];
  int64_t first[GROUP + 1]; /* piece of each in this order; the last is their number */
} schedule;

/* Some rows of some heads of a sequence. */
typedef struct piece {
  int64_t sequence, from, to, head, heads;
} piece;

/* Heads of a piece: several where a sequence is so short that handing them out would cost. */
static inline int64_t heads_together(int64_t heads, int64_t length) {
  const int64_t enough = (int64_t)128 * 128;
  return mr_min(heads, mr_max(1, enough / mr_max(1, length * length)));
}

static inline int64_t pieces_of(int64_t n, int64_t size) { return (n + size - 1) / size; }

/* Number of bits: lengths within a factor of two are alike. */
static inline int length_class(int64_t length) {
  int bits = 0;
  for (; length > 0; length >>= 1) bits++;
  return bits;
}

/* The work of sequences start .. start + GROUP - 1, as far as there are any, in pieces of `rows`
 * rows; 0 for whole sequences. */
static inline schedule share_out(const mr_attention *a, int64_t start, int64_t rows) {
  schedule w = {.heads = a->heads, .rows = rows, .sequences = mr_min(GROUP, a->sequences - start)};
  int64_t place[65] = {0};
  for (int64_t s = start; s < start + w.sequences; s++) place[length_class(a->lengths[s])]++;
  for (int64_t sum = w.sequences, i = 0; i < 65; i++) place[i] = sum -= place[i];
  for (int64_t s = start; s < start + w.sequences; s++) {
    w.order[place[length_class(a->lengths[s])]++] = s;
  }
  w.first[0] = 0;
  for (int64_t i = 0; i < w.sequences; i++) {
    const int64_t length = a->lengths[w.order[i]];
    const int64_t lots = pieces_of(a->heads, heads_together(a->heads, length));
    w.first[i + 1] = w.first[i] + lots * (rows > 0 ? pieces_of(length, rows) : length > 0);
  }
  return w;
}

static inline piece piece_of(const mr_attention *a, const schedule *w, int64_t index) {
  int64_t low = 0, high = w->sequences - 1;
  while (low < high) {
    const int64_t middle = (low + high) / 2;
    if (w->first[middle + 1] > index) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  const int64_t sequence = w->order[low], length = a->lengths[sequence];
  const int64_t together = heads_together(w->heads, length), lots = pieces_of(w->heads, together);
  const int64_t later = (w->first[low + 1] - 1 - index) / lots;
  piece p = {sequence, 0, length, (index - w->first[low]) % lots * together, together};
  p.heads = mr_min(together, w->heads - p.head);
  if (w->rows > 0) {
    p.from = later * w->rows;
    p.to = mr_min(length, p.from + w->rows);
  }
  return p;
}

/* Threads for the work in `a`, which grows with the rows seen by each row. */
static inline int threads_for(const mr_launch *l, const mr_attention *a) {
  int64_t work = 0;
  for (int64_t s = 0; s < a->sequences; s++) work += a->lengths[s] * a->lengths[s];
  return mr_threads(l, work * a->heads * (a->head_size + 8) / 8);
}

#endif
