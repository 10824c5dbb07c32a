/* The gradient of attention, by the tiles of the forward: probabilities are worked out again from
 * scores and lse, so nothing larger than a block of tile rows is stored.
 *
 * Sums over keys (dq) and over queries (dk, dv) are in the order of rows, tile by tile, whether one
 * thread works on a head or several do. So the number of threads changes no bit. */
#include <errno.h>
#include <stddef.h>

#include "kernels/cpu/attention.h"
#include "kernels/cpu/rows.h"
#include "kernels/cpu/vector_math.h"

enum { PIECE = 256 }; /* rows of a piece where a head is shared among threads */

/* What is kept of a tile row: where its queries, scaled, and its dout lie as lines, and by query
 * the lse and the product of out and dout. */
typedef struct tile_row {
  tile t;
  real *q, *dout;
  real lse[LANES], along[LANES];
} tile_row;

/* along[i] = sum over c of x[i, c] y[i, c], rows of h->size reals at h->out_stride; 0 for lanes
 * from `count` on. Channels LANES apart are summed first. */
static void multiply_along(const head *h, int64_t count, const real *restrict x,
                           const real *restrict y, real *restrict along) {
  real part[LANES][LANES], turned[LANES][LANES];
  for (int64_t i = 0; i < count; i++) {
    const real *a = x + i * h->out_stride, *b = y + i * h->out_stride;
    for (int64_t c = 0; c < LANES; c++) part[i][c] = c < h->size ? a[c] * b[c] : 0;
    for (int64_t from = LANES; from < h->size; from += LANES) {
      const int64_t used = mr_min(LANES, h->size - from);
      for (int64_t c = 0; c < used; c++) part[i][c] += a[from + c] * b[from + c];
    }
  }
  to_lines(count, LANES, 1, part[0], LANES, turned);
  memset(along, 0, LANES * sizeof(real));
  for (int64_t c = 0; c < LANES; c++) {
    for (int64_t i = 0; i < LANES; i++) along[i] += turned[c][i];
  }
}

static void begin_row(const head *h, int64_t first, tile_row *w) {
  const tile t = w->t = row_of_tiles(h, first);
  const real *dout = h->dout + first * h->out_stride;
  to_lines(t.count, h->size, 1 / sqrt((real)h->size), h->q + first * h->q_stride, h->q_stride,
           (real(*)[LANES])w->q);
  to_lines(t.count, h->size, 1, dout, h->out_stride, (real(*)[LANES])w->dout);
  multiply_along(h, t.count, h->out + first * h->out_stride, dout, w->along);
  for (int64_t i = 0; i < LANES; i++) {
    w->lse[i] = i < t.count ? h->lse[(first + i) * h->lse_stride] : 0;
  }
}

/* p = probabilities, ds = gradient of the scores, times the score scale */
static void score_gradient(const head *h, const tile_row *w, matrix keys, matrix values,
                           real (*restrict p)[LANES], real (*restrict ds)[LANES]) {
  const real scale = 1 / sqrt((real)h->size);
  score(h, &w->t, w->q, keys, p);
  multiply_lines(
      w->t.keys,
      (line_product){
          h->size, {values.x, values.stride, 1}, w->dout, LANES, ds[0], LANES, .add = 0});
  /* The analyzer does not see that multiply_lines writes every line. */
  for (int64_t j = 0; j < w->t.keys; j++) {
    for (int i = 0; i < LANES; i++) {
      /* NOLINTNEXTLINE(clang-analyzer-core.UndefinedBinaryOperatorResult) */
      p[j][i] = mr_exp_below(p[j][i] - w->lse[i]);
      /* NOLINTNEXTLINE(clang-analyzer-core.UndefinedBinaryOperatorResult) */
      ds[j][i] = p[j][i] * (ds[j][i] - w->along[i]) * scale;
    }
  }
}

/* dx[j] += sum over the queries of weights[j][i] x[i]; dx: rows of the tile's keys */
static void add_to_keys(const head *h, const tile *t, real (*weights)[LANES], const real *x,
                        int64_t x_stride, real *dx) {
  multiply_rows(t->keys, h->size,
                (line_product){t->count,
                               {weights[0], LANES, 1},
                               x + t->first * x_stride,
                               x_stride,
                               dx,
                               h->size,
                               .add = 1});
}

/* dq[i] += sum over the tile's keys of ds[j][i] k[j] */
static void add_to_queries(const head *h, const tile *t, real (*ds)[LANES], matrix keys) {
  multiply_rows(t->count, h->size,
                (line_product){t->keys,
                               {ds[0], 1, LANES},
                               keys.x,
                               keys.stride,
                               h->dq + t->first * h->q_stride,
                               h->q_stride,
                               .add = 1});
}

/* Tile rows of a block, and room for the keys that they look at and for those keys' gradients. */
typedef struct block {
  int count;
  tile_row row[ROWS];
  real q[ROOM], dout[ROOM];
  real k[KEYS * MR_HEAD_SIZE_MAX], v[KEYS * MR_HEAD_SIZE_MAX];
  real dk[KEYS * MR_HEAD_SIZE_MAX], dv[KEYS * MR_HEAD_SIZE_MAX];
} block;

/* Adds what the block's queries pass on through the keys key .. key + seen - 1. */
static void pass_keys(const head *h, block *b, int64_t key, int64_t seen) {
  real p[KEYS][LANES], ds[KEYS][LANES];
  const int64_t size = h->size;
  real *dk = h->dk ? h->dk + key * h->k_stride : NULL,
       *dv = h->dv ? h->dv + key * h->v_stride : NULL;
  const matrix keys = gather_rows(h, key, seen, h->k, h->k_stride, b->k, b->count == 1);
  const matrix values = gather_rows(h, key, seen, h->v, h->v_stride, b->v, b->count == 1);
  if (dk) copy_rows(seen, size, dk, h->k_stride, b->dk, size);
  if (dv) copy_rows(seen, size, dv, h->v_stride, b->dv, size);
  for (int i = 0; i < b->count; i++) {
    tile *t = &b->row[i].t;
    if (!set_keys(h, t, key)) continue;
    score_gradient(h, &b->row[i], keys, values, p, ds);
    if (h->dq) add_to_queries(h, t, ds, keys);
    if (dk) add_to_keys(h, t, ds, h->q, h->q_stride, b->dk);
    if (dv) add_to_keys(h, t, p, h->dout, h->out_stride, b->dv);
  }
  if (dk) copy_rows(seen, size, b->dk, size, dk, h->k_stride);
  if (dv) copy_rows(seen, size, b->dv, size, dv, h->v_stride);
}

/* Adds what queries from .. to - 1 pass on through keys from `key` to before `end`: to dq, dk and
 * dv, of which those that are NULL are left out. */
static void pass_back(const head *h, int64_t from, int64_t to, int64_t key, int64_t end) {
  block b;
  const int64_t together = queries_together(h->size);
  for (; from < to; from += together) {
    const int64_t last = mr_min(to, from + together), seen = mr_min(end, visible_keys(h, last));
    b.count = 0;
    for (int64_t first = from; first < last; first += LANES, b.count++) {
      tile_row *w = &b.row[b.count];
      w->q = b.q + (int64_t)b.count * LANES * h->size;
      w->dout = b.dout + (int64_t)b.count * LANES * h->size;
      begin_row(h, first, w);
    }
    for (int64_t k = key; k < seen; k += KEYS) pass_keys(h, &b, k, mr_min(KEYS, seen - k));
  }
}

/* Whether threads have to share heads: when all would wait for the longest one for longer than
 * working out scores twice takes, which makes seven products of five. */
static int share_heads(const mr_attention *a, int threads) {
  int64_t sum = 0, most = 0;
  for (int64_t s = 0; s < a->sequences; s++) {
    const int64_t work = a->lengths[s] * a->lengths[s];
    sum += work;
    most = mr_max(most, work);
  }
  return (double)most * threads * 5 > (double)sum * (double)a->heads * 7;
}

/* What a piece stands for: all of its heads; or, of a head that is shared, dq of the piece's
 * queries, or dk and dv of its keys. */
typedef enum part_of_work { ALL, OF_QUERIES, OF_KEYS } part_of_work;

static void work_out(const mr_attention *a, const head *all, const piece *p, part_of_work what) {
  for (int64_t i = p->head; i < p->head + p->heads; i++) {
    head h = part(a, all, p->sequence, i);
    if (what == ALL) {
      pass_back(&h, 0, h.length, 0, h.length);
    } else if (what == OF_QUERIES) {
      h.dk = h.dv = NULL;
      pass_back(&h, p->from, p->to, 0, h.length);
    } else {
      h.dq = NULL;
      pass_back(&h, h.causal ? p->from : 0, h.length, p->from, p->to);
    }
  }
}

/* Whether gradients lie in one array, as they do where q, k and v are one tensor. */
static int in_one_array(const void *dq, const void *dk, const void *dv) {
  return (dq != NULL && (dq == dk || dq == dv)) || (dk != NULL && dk == dv);
}

int MR_ROW(attention_backward)(const mr_launch *l, const mr_attention *a, const void *q,
                               const void *k, const void *v, const void *out, const void *lse,
                               const void *dout, void *dq, void *dk, void *dv) {
  if (a->head_size > MR_HEAD_SIZE_MAX) return ERANGE;
  if (in_one_array(dq, dk, dv)) { /* copies of keys' gradients would miss what others add */
    MR_ROW(attention_backward)(l, a, q, k, v, out, lse, dout, dq, NULL, NULL);
    MR_ROW(attention_backward)(l, a, q, k, v, out, lse, dout, NULL, dk, NULL);
    return MR_ROW(attention_backward)(l, a, q, k, v, out, lse, dout, NULL, NULL, dv);
  }
  head all = whole(a, q, k, v);
  all.out = (real *)out;
  all.lse = (real *)lse;
  all.dout = dout;
  all.dq = dq;
  all.dk = dk;
  all.dv = dv;
  const int threads = threads_for(l, a), shared = share_heads(a, threads);
  for (int64_t start = 0; start < a->sequences; start += GROUP) {
    const schedule w = share_out(a, start, shared ? PIECE : 0);
    const int64_t pieces = w.first[w.sequences];
#pragma omp parallel for num_threads(threads) schedule(dynamic)
    for (int64_t i = 0; i < (shared ? 2 * pieces : pieces); i++) {
      const piece p = piece_of(a, &w, i % pieces);
      work_out(a, &all, &p, !shared ? ALL : i < pieces ? OF_KEYS : OF_QUERIES);
    }
  }
  return 0;
}
