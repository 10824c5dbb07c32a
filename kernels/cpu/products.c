/* Products are cut into tiles of c; each tile is one single-threaded OpenBLAS call, k whole.
 *
 * Invariant: tiles follow from m, n and k alone. OpenBLAS may round an element differently when
 * it is part of another tile, so this is what makes results independent of the threads. */
#include "kernels/cpu/products.h"

#include <cblas.h>
#include <errno.h>
#include <limits.h>
#include <omp.h>
#include <stdatomic.h>
#include <stddef.h>

#include "kernels/cpu/columns.h"
#include "kernels/cpu/gelu.h"
#include "kernels/cpu/parallel.h"

#if MR_REAL_BITS == 64
#define multiply_matrices cblas_dgemm
#else
#define multiply_matrices cblas_sgemm
#endif

enum {
  EDGE = 16,          /* tile edges are multiples of this, but for the last of a row or column */
  FEW_TILES = 4,      /* enough tiles for a small product ... */
  MANY_TILES = 64,    /* ... and for any */
  SHORT_EDGE = 64,    /* an edge below this is not cut ... */
  LONG_EDGE = 1 << 20 /* ... and one above this is, whatever else */
};

/* Multiply-adds below which a tile is not cut: about 20 microseconds of a core while there are
 * few tiles, 2 milliseconds after that. OpenBLAS packs both edges of every tile: with 16 million
 * a quarter of the time went into packing. */
static const double SMALL_TILE = 2 << 20, LARGE_TILE = 128 << 20;

typedef struct grid {
  int64_t tile_m, tile_n; /* extents of a tile */
  int64_t across, tiles;  /* tiles in a row of tiles, and in all */
} grid;

static int64_t pieces(int64_t n, int64_t size) { return (n + size - 1) / size; }

static int64_t half(int64_t edge) { return pieces(pieces(edge, 2), EDGE) * EDGE; }

static int small_enough(const grid *g, int64_t k) {
  const double work = (double)g->tile_m * (double)g->tile_n * (double)k;
  const int64_t longer = mr_max(g->tile_m, g->tile_n);
  if (longer < SHORT_EDGE) return 1;
  if (longer > LONG_EDGE) return 0;
  if (g->tiles < FEW_TILES) return work < SMALL_TILE;
  return work < LARGE_TILE || g->tiles >= MANY_TILES;
}

/* Halves the longer edge, since packing a tile for OpenBLAS costs as its edges do. */
static grid cut(const mr_product *p) {
  grid g = {p->m, p->n, 1, 1};
  if (p->m == 0 || p->n == 0) return (grid){0, 0, 0, 0};
  while (!small_enough(&g, p->k)) {
    if (g.tile_m >= g.tile_n) {
      g.tile_m = half(g.tile_m);
    } else {
      g.tile_n = half(g.tile_n);
    }
    g.across = pieces(p->n, g.tile_n);
    g.tiles = g.across * pieces(p->m, g.tile_m);
  }
  return g;
}

static void set_rows(int64_t rows, int64_t cols, int64_t stride, const real *restrict bias,
                     real *restrict c) {
  for (int64_t row = 0; row < rows; row++) {
    for (int64_t j = 0; j < cols; j++) c[row * stride + j] = bias[j];
  }
}

/* c = beta c; whatever c held is forgotten when beta is 0 */
static void scale_rows(int64_t rows, int64_t cols, int64_t stride, real beta, real *c) {
  for (int64_t row = 0; row < rows; row++) {
    for (int64_t j = 0; j < cols; j++) {
      c[row * stride + j] = beta == 0 ? 0 : beta * c[row * stride + j];
    }
  }
}

/* What follows a product in its tile of m x n, the first element of which is `at` behind c. */
static void finish(const mr_product *p, int64_t m, int64_t n, int64_t at) {
  for (int64_t row = 0; row < m; row++) {
    const int64_t first = at + row * p->n;
    real *restrict c = p->c + first;
    if (p->gelu != NULL) {
      real *restrict y = p->gelu + first;
      for (int64_t j = 0; j < n; j++) y[j] = mr_gelu(c[j]);
    }
    if (p->gelu_input != NULL) {
      const real *restrict x = p->gelu_input + first;
      for (int64_t j = 0; j < n; j++) c[j] = mr_gelu_gradient(x[j], c[j]);
    }
  }
}

static void multiply_tile(const mr_product *p, int64_t row, int64_t col, int64_t m, int64_t n) {
  real *c = p->c + row * p->n + col;
  if (p->bias != NULL) set_rows(m, n, p->n, p->bias + col, c);
  if (p->k == 0) {
    scale_rows(m, n, p->n, p->beta, c);
    return;
  }
  const real *a = p->a + (p->transpose_a ? row : row * p->k);
  const real *b = p->b + (p->transpose_b ? col * p->k : col);
  multiply_matrices(CblasRowMajor, p->transpose_a ? CblasTrans : CblasNoTrans,
                    p->transpose_b ? CblasTrans : CblasNoTrans, (int)m, (int)n, (int)p->k, p->alpha,
                    a, (int)(p->transpose_a ? p->m : p->k), b, (int)(p->transpose_b ? p->k : p->n),
                    p->beta, c, (int)p->n);
}

static void work_out(const mr_product *p, const grid *g, int64_t tile) {
  const int64_t row = tile / g->across * g->tile_m, col = tile % g->across * g->tile_n;
  const int64_t m = mr_min(g->tile_m, p->m - row), n = mr_min(g->tile_n, p->n - col);
  if (p->a_sums != NULL && col == 0) {
    mr_column_range(p->k, p->m, m, p->a + row, p->a_sums + row);
  }
  multiply_tile(p, row, col, m, n);
  if (p->gelu != NULL || p->gelu_input != NULL) finish(p, m, n, row * p->n + col);
}

void MR_ROW(whole_product)(const mr_product *product) {
  const grid whole = {product->m, product->n, 1, 1};
  if (product->m > 0 && product->n > 0) work_out(product, &whole, 0);
}

/* Tiles of a product, as shares of the team: thread t begins with share t, whose rows of `a` and
 * `c` it had in other operations too, so that they are likely to lie in its own cache; a thread
 * that is done takes from the shares of others. */
typedef struct share {
  _Atomic int64_t next;
  int64_t past;
} share;

enum { MAX_PRODUCTS = 2, MAX_SHARES = 64 };

typedef struct job {
  const mr_product *product;
  grid grid;
  share share[MAX_SHARES];
} job;

static void share_out(job *j, int shares) {
  for (int s = 0; s < shares; s++) {
    atomic_init(&j->share[s].next, j->grid.tiles * s / shares);
    j->share[s].past = j->grid.tiles * (s + 1) / shares;
  }
}

static void work_through(job *j, share *from) {
  for (;;) {
    const int64_t tile = atomic_fetch_add_explicit(&from->next, 1, memory_order_relaxed);
    if (tile >= from->past) return;
    work_out(j->product, &j->grid, tile);
  }
}

static void work_as(int thread, job *jobs, int count, int shares) {
  for (int turn = 0; turn < shares; turn++) {
    for (int i = 0; i < count; i++)
      work_through(&jobs[i], &jobs[i].share[(thread + turn) % shares]);
  }
}

int MR_ROW(products)(const mr_launch *l, int count, const mr_product *products) {
  job jobs[MAX_PRODUCTS];
  int64_t tiles = 0;
  for (int i = 0; i < count; i++) {
    const mr_product *p = &products[i];
    if (p->m > INT_MAX || p->n > INT_MAX || p->k > INT_MAX) return EOVERFLOW;
    jobs[i].product = p;
    jobs[i].grid = cut(p);
    tiles += jobs[i].grid.tiles;
  }
  const int shares = (int)mr_min(mr_min(l->threads, MAX_SHARES), mr_max(1, tiles));
  for (int i = 0; i < count; i++) share_out(&jobs[i], shares);
  if (shares == 1) {
    work_as(0, jobs, count, 1);
    return 0;
  }
#pragma omp parallel num_threads(shares)
  work_as(omp_get_thread_num(), jobs, count, shares);
  return 0;
}
