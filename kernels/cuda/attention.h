/* What attention and its gradient share on GPUs: tiles, where they lie, and products of them.
 *
 * A block works on one tile of rows of one head of one sequence (queries, or in the gradient of
 * keys and values: keys), and goes along the tiles of the other kind that it sees. Its 256 threads
 * stand 16 by 16: thread (x, y) has scores of rows y * each .. and columns x, x + 16, ..., so that
 * a row's scores lie in half a warp. Columns of heads are staged CHUNK at a time in shared memory,
 * so that its size does not depend on the head's. */
#ifndef MR_CUDA_ATTENTION_H
#define MR_CUDA_ATTENTION_H

#include <errno.h>
#include <stdint.h>

#include "kernels/cuda/each.h"
#include "kernels/cuda/errors.h"
#include "kernels/cuda/real.h"
#include "kernels/kernels.h"

enum { MR_ATTENTION_SIDE = 16, MR_ATTENTION_THREADS = 256, MR_ATTENTION_CHUNK = 64 };

/* Sizes for heads of at most `size` columns. */
template <typename T, int size>
struct mr_attention_shape {
  typedef typename mr_cuda_sum<T>::type A;
  static const int chunks = size / MR_ATTENTION_CHUNK;
  static const int tile = (sizeof(A) == 4 ? 64 : 32) / (size > 128 ? 2 : 1); /* rows */
  static const int each = tile / MR_ATTENTION_SIDE;                          /* rows of a thread */
  static const int lanes = 16 / sizeof(A); /* reals that are loaded together */
  static const int stride = MR_ATTENTION_CHUNK + lanes, weights_stride = tile + lanes;
  static const int staged = tile * stride; /* reals of a staged tile */
  static const int weights = tile * weights_stride;
  static const int own = MR_ATTENTION_CHUNK / MR_ATTENTION_SIDE; /* columns of a chunk, a thread */
  typedef A scores[each][each];
  typedef A sums[chunks][each][own];
};

template <typename A>
struct alignas(16) mr_attention_lanes {
  A x[16 / sizeof(A)];
};

template <typename A>
__device__ inline mr_attention_lanes<A> mr_load_lanes(const A *x) {
  return *(const mr_attention_lanes<A> *)x;
}

__device__ inline int mr_attention_x() { return (int)threadIdx.x % MR_ATTENTION_SIDE; }
__device__ inline int mr_attention_y() { return (int)threadIdx.x / MR_ATTENTION_SIDE; }

/* The column within a chunk of a thread's column i: lanes that are loaded together lie together,
 * those of neighbours behind one another. */
template <typename S>
__device__ inline int mr_attention_column(int i) {
  return i / S::lanes * MR_ATTENTION_SIDE * S::lanes + mr_attention_x() * S::lanes + i % S::lanes;
}

/* --- where a block works --- */

/* Rows first .. of a sequence's `length` rows, which begin at row `start`, in one head. */
struct mr_attention_place {
  int64_t start, length, first;
  int head;
};

/* before[s] = tiles of `tile` rows of the sequences before s, for s in 0 .. sequences. */
int mr_attention_count_tiles(const mr_launch *l, int64_t sequences, int64_t tile,
                             const int64_t *lengths, int64_t *before);

/* The last s < n with before[s] <= tile; the lanes of a warp look at 32 places at a time. */
__device__ inline int64_t mr_attention_find(int64_t n, const int64_t *before, int64_t tile) {
  int64_t low = 0;
  while (n > 1) {
    const int64_t step = (n + 31) / 32, at = (threadIdx.x % 32) * step;
    const int passed =
        __popc(__ballot_sync(0xffffffffU, at < n && before[low + (at < n ? at : 0)] <= tile));
    const int64_t skipped = (passed - 1) * step;
    low += skipped;
    n = n - skipped < step ? n - skipped : step;
  }
  return low;
}

/* False where the grid has more blocks than there are tiles. Heads of a tile are neighbours; with
 * `last_first`, the grid begins with the last tile. */
__device__ inline bool mr_attention_locate(const mr_attention &a, const int64_t *before, int tile,
                                           bool last_first, mr_attention_place *p) {
  const unsigned heads = (unsigned)a.heads;
  const int64_t all = before[a.sequences], index = blockIdx.x / heads;
  if (index >= all) return false;
  const int64_t mine = last_first ? all - 1 - index : index;
  const int64_t sequence = mr_attention_find(a.sequences, before, mine);
  p->head = (int)(blockIdx.x % heads);
  p->start = a.starts[sequence];
  p->length = a.lengths[sequence];
  p->first = (mine - before[sequence]) * tile;
  return true;
}

/* Calls work(part, before, blocks) for the sequences, as many at a time as scratch has room for:
 * `part` is `a` with those alone, `blocks` enough for their tiles in all heads. */
template <typename F>
inline int mr_attention_each(const mr_launch *l, const mr_attention *a, int tile, F work) {
  const int64_t room = (int64_t)(MR_CUDA_SCRATCH / sizeof(int64_t)) - 1;
  int64_t *before = (int64_t *)mr_cuda_of(l)->scratch;
  for (int64_t first = 0; first < a->sequences; first += room) {
    mr_attention part = *a;
    part.sequences = mr_cuda_min(room, a->sequences - first);
    part.starts += first;
    part.lengths += first;
    const int64_t tiles = a->rows / tile + mr_cuda_min(part.sequences, a->rows);
    if (a->heads > 0 && tiles > INT32_MAX / a->heads) return mr_cuda_errno(EOVERFLOW);
    int error = mr_attention_count_tiles(l, part.sequences, tile, part.lengths, before);
    if (error == 0) error = work(part, (const int64_t *)before, (unsigned)(tiles * a->heads));
    if (error != 0) return error;
  }
  return 0;
}

/* --- tiles --- */

/* to = columns of `count` rows of x: up to CHUNK of them, `columns` being left; zeros beyond. */
template <typename S, typename T>
__device__ inline void mr_attention_stage(const T *x, int64_t stride, int count, int columns,
                                          typename S::A *to) {
  const int rows = MR_ATTENTION_THREADS / MR_ATTENTION_CHUNK, together = 4;
  const int col = (int)threadIdx.x % MR_ATTENTION_CHUNK;
  const int above = (int)threadIdx.x / MR_ATTENTION_CHUNK;
  x += above * stride + col;
  to += above * S::stride + col;
  count = col < columns ? count - above : 0;
  MR_CUDA_ROLLED
  for (int i = 0; i < S::tile; i += rows * together) {
    MR_CUDA_UNROLL
    for (int u = 0; u < together * rows; u += rows) {
      to[u * S::stride] = i + u < count ? mr_up(x[u * stride]) : 0;
    }
    x += rows * together * stride;
    to += rows * together * S::stride;
  }
}

/* s[i][j] += the sum over `columns` columns, at most CHUNK, of a's row y * each + i times b's row
 * x + 16 j, both staged */
template <typename S>
__device__ inline void mr_attention_multiply(const typename S::A *a, const typename S::A *b,
                                             int columns, typename S::scores &s) {
  typedef mr_attention_lanes<typename S::A> lanes;
  a += mr_attention_y() * S::each * S::stride;
  b += mr_attention_x() * S::stride;
  MR_CUDA_ROLLED
  for (int c = 0; c < columns && c < MR_ATTENTION_CHUNK; c += S::lanes) {
    lanes left[S::each], right[S::each];
    MR_CUDA_UNROLL
    for (int i = 0; i < S::each; i++) {
      left[i] = mr_load_lanes(a + i * S::stride + c);
      right[i] = mr_load_lanes(b + i * MR_ATTENTION_SIDE * S::stride + c);
    }
    MR_CUDA_UNROLL
    for (int i = 0; i < S::each; i++) {
      MR_CUDA_UNROLL
      for (int j = 0; j < S::each; j++) {
        MR_CUDA_UNROLL
        for (int e = 0; e < S::lanes; e++) s[i][j] += left[i].x[e] * right[j].x[e];
      }
    }
  }
}

/* Hands this thread's scores to those of its half of the warp, which alone read these rows of the
 * weights. What they read before must be behind them: a barrier of the warp or block lies between
 * two calls. */
template <typename S>
__device__ inline void mr_attention_hand_over(const typename S::scores &s, typename S::A *weights) {
  weights += mr_attention_y() * S::each * S::weights_stride + mr_attention_x();
  MR_CUDA_UNROLL
  for (int i = 0; i < S::each; i++) {
    MR_CUDA_UNROLL
    for (int j = 0; j < S::each; j++) {
      weights[i * S::weights_stride + j * MR_ATTENTION_SIDE] = s[i][j];
    }
  }
  __syncwarp();
}

/* sum[i] += the sum over rows k < count of weights[y * each + i][k] times b's row k, in this
 * thread's columns; weights from `count` on are 0 where b's rows are */
template <typename S>
__device__ inline void mr_attention_accumulate(const typename S::A *weights, const typename S::A *b,
                                               int count, typename S::A (&sum)[S::each][S::own]) {
  typedef mr_attention_lanes<typename S::A> lanes;
  weights += mr_attention_y() * S::each * S::weights_stride;
  MR_CUDA_ROLLED
  for (int k = 0; k < count; k += S::lanes) {
    lanes w[S::each];
    MR_CUDA_UNROLL
    for (int i = 0; i < S::each; i++) w[i] = mr_load_lanes(weights + i * S::weights_stride + k);
    MR_CUDA_UNROLL
    for (int e = 0; e < S::lanes; e++) {
      MR_CUDA_UNROLL
      for (int c = 0; c < S::own; c += S::lanes) {
        const lanes v = mr_load_lanes(b + (k + e) * S::stride + mr_attention_column<S>(c));
        MR_CUDA_UNROLL
        for (int i = 0; i < S::each; i++) {
          MR_CUDA_UNROLL
          for (int u = 0; u < S::lanes; u++) sum[i][c + u] += w[i].x[e] * v.x[u];
        }
      }
    }
  }
}

/* The sum of the 16 values of half a warp, for each of them, in one order. */
template <typename A>
__device__ inline A mr_attention_sum(A value) {
  MR_CUDA_UNROLL
  for (int bits = 8; bits > 0; bits /= 2) value += __shfl_xor_sync(0xffffffffU, value, bits);
  return value;
}

/* Runs `work<size>` with the least size that the head fits in. */
#define MR_ATTENTION_BY_SIZE(head_size, work, ...)  \
  ((head_size) <= 64    ? work<T, 64>(__VA_ARGS__)  \
   : (head_size) <= 128 ? work<T, 128>(__VA_ARGS__) \
   : (head_size) <= 256 ? work<T, 256>(__VA_ARGS__) \
                        : work<T, 512>(__VA_ARGS__))

/* 1 / sqrt(head size) */
template <typename A>
inline A mr_attention_scale(const mr_attention *a) {
  return (A)(1 / sqrt((double)mr_cuda_max(1, a->head_size)));
}

#endif
