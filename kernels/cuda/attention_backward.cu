/* The gradient of attention, by the tiles of the forward: probabilities are worked out again from
 * scores and lse, so nothing larger than a tile of them is stored.
 *
 * One kernel goes over the keys of a tile of queries, for dq; another over the queries of a tile
 * of keys, for dk and dv. So each sum belongs to one block, in the order of rows, at the price of
 * scores that are worked out twice. */
#include "kernels/cuda/attention.h"
#include "kernels/cuda/table.h"

namespace {

template <typename T>
struct arrays {
  const T *q, *k, *v, *out;
  const typename mr_cuda_sum<T>::type *lse;
  const T *dout;
  T *dq, *dk, *dv;
  typename mr_cuda_sum<T>::type scale;
};

/* Arrays from a sequence's first row and a head's first column on. */
template <typename T>
struct head {
  typedef typename mr_cuda_sum<T>::type A;
  const T *q, *k, *v, *out;
  const A *lse;
  const T *dout;
  int columns;
  int64_t out_stride;

  __device__ head(const mr_attention &a, const mr_attention_place &p, const arrays<T> &x)
      : columns((int)a.head_size), out_stride(a.heads * a.head_size) {
    const int64_t col = (int64_t)p.head * columns;
    q = x.q + p.start * a.q_stride + col;
    k = x.k + p.start * a.k_stride + col;
    v = x.v + p.start * a.v_stride + col;
    out = x.out + p.start * out_stride + col;
    dout = x.dout + p.start * out_stride + col;
    lse = x.lse + p.start * a.heads + p.head;
  }
};

/* along[i] = the sum over columns of out and dout of query first + y * each + i, lse[i] its lse;
 * zeros from `count` on */
template <typename S, typename T>
__device__ inline void look_up(const mr_attention &a, const head<T> &h, int64_t first, int count,
                               typename S::A (&along)[S::each], typename S::A (&lse)[S::each]) {
  MR_CUDA_UNROLL
  for (int i = 0; i < S::each; i++) {
    const int own = mr_attention_y() * S::each + i;
    const int64_t row = first + (own < count ? own : 0);
    const T *out = h.out + row * h.out_stride, *up = h.dout + row * h.out_stride;
    typename S::A sum = 0;
    MR_CUDA_ROLLED
    for (int c = mr_attention_x(); c < h.columns; c += MR_ATTENTION_SIDE) {
      sum += mr_up(out[c]) * mr_up(up[c]);
    }
    sum = mr_attention_sum(sum);
    along[i] = own < count ? sum : 0;
    lse[i] = own < count ? h.lse[row * a.heads] : 0;
  }
}

/* dx += sum for the thread's rows of the `count` that there are; dx lies at the tile's first row
 * and the head's first column. */
template <typename S, typename T>
__device__ inline void add(const typename S::sums &sum, int count, int columns, int64_t stride,
                           T *dx) {
  MR_CUDA_UNROLL
  for (int i = 0; i < S::each; i++) {
    const int own = mr_attention_y() * S::each + i;
    MR_CUDA_UNROLL
    for (int m = 0; m < S::chunks; m++) {
      MR_CUDA_UNROLL
      for (int c = 0; c < S::own; c++) {
        const int col = m * MR_ATTENTION_CHUNK + mr_attention_column<S>(c);
        if (own >= count || col >= columns) continue;
        T *to = dx + own * stride + col;
        *to = mr_down<T>(mr_up(*to) + sum[m][i][c]);
      }
    }
  }
}

/* sum += weights times x, which is staged already where the head is a chunk; else `count` rows of
 * x are, chunk by chunk. */
template <typename S, typename T>
__device__ inline void accumulate(const typename S::A *weights, const T *x, int64_t stride,
                                  int count, int columns, typename S::A *staged,
                                  typename S::sums &sum) {
  MR_CUDA_UNROLL
  for (int m = 0; m < S::chunks; m++) {
    const int from = m * MR_ATTENTION_CHUNK;
    if (from >= columns) break;
    if (S::chunks > 1) {
      __syncthreads(); /* all have done with what was staged */
      mr_attention_stage<S>(x + from, stride, count, columns - from, staged);
      __syncthreads();
    }
    mr_attention_accumulate<S>(weights, staged, count, sum[m]);
  }
}

/* A block: dq of one tile of queries of one head. Shared: staged tiles of queries, dout, keys and
 * values, and the weights. */
template <typename T, int size>
__global__ void __launch_bounds__(MR_ATTENTION_THREADS, size == 64 ? 2 : 1)
    of_queries(mr_attention a, const int64_t *before, arrays<T> x) {
  typedef mr_attention_shape<T, size> S;
  typedef typename S::A A;
  MR_CUDA_SHARED_DYNAMIC(A, shared);
  A *queries = shared, *up = queries + S::staged, *keys = up + S::staged,
    *values = keys + S::staged, *weights = values + S::staged;
  mr_attention_place p;
  if (!mr_attention_locate(a, before, S::tile, true, &p)) return; /* the whole block */
  const head<T> h(a, p, x);
  const int64_t left = p.length - p.first, bound = a.causal ? p.first + S::tile : p.length;
  const int64_t end = bound < p.length ? bound : p.length;
  const int count = left < S::tile ? (int)left : S::tile;
  A along[S::each], lse[S::each];
  typename S::sums sum = {};
  look_up<S>(a, h, p.first, count, along, lse);
  for (int64_t key = 0; key < end; key += S::tile) {
    const int seen = end - key < S::tile ? (int)(end - key) : S::tile;
    typename S::scores s = {}, d = {};
    for (int from = 0; from < h.columns; from += MR_ATTENTION_CHUNK) {
      const int columns = h.columns - from;
      __syncthreads(); /* all have done with what was staged */
      if (S::chunks > 1 || key == 0) {
        mr_attention_stage<S>(h.q + p.first * a.q_stride + from, a.q_stride, count, columns,
                              queries);
        mr_attention_stage<S>(h.dout + p.first * h.out_stride + from, h.out_stride, count, columns,
                              up);
      }
      mr_attention_stage<S>(h.k + key * a.k_stride + from, a.k_stride, seen, columns, keys);
      mr_attention_stage<S>(h.v + key * a.v_stride + from, a.v_stride, seen, columns, values);
      __syncthreads();
      mr_attention_multiply<S>(queries, keys, columns, s);
      mr_attention_multiply<S>(up, values, columns, d);
    }
    const int ahead = p.first - key < S::tile ? (int)(p.first - key) : S::tile;
    MR_CUDA_UNROLL
    for (int i = 0; i < S::each; i++) {
      const int last = a.causal ? ahead + mr_attention_y() * S::each + i : S::tile;
      MR_CUDA_UNROLL
      for (int j = 0; j < S::each; j++) {
        const int own = mr_attention_x() + j * MR_ATTENTION_SIDE;
        const A probability = own < seen && own <= last ? exp(s[i][j] * x.scale - lse[i]) : 0;
        s[i][j] = probability * (d[i][j] - along[i]) * x.scale;
      }
    }
    mr_attention_hand_over<S>(s, weights);
    accumulate<S>(weights, h.k + key * a.k_stride, a.k_stride, seen, h.columns, keys, sum);
  }
  add<S>(sum, count, h.columns, a.q_stride,
         x.dq + (p.start + p.first) * a.q_stride + (int64_t)p.head * h.columns);
}

/* A block: dk and dv, each if asked for, of one tile of keys of one head. Shared: as above, and
 * along and lse of the queries. */
template <typename T, int size>
__global__ void __launch_bounds__(MR_ATTENTION_THREADS, 1)
    of_keys(mr_attention a, const int64_t *before, arrays<T> x) {
  typedef mr_attention_shape<T, size> S;
  typedef typename S::A A;
  MR_CUDA_SHARED_DYNAMIC(A, shared);
  A *queries = shared, *up = queries + S::staged, *keys = up + S::staged,
    *values = keys + S::staged, *weights = values + S::staged, *all_along = weights + S::weights,
    *all_lse = all_along + S::tile;
  mr_attention_place p;
  if (!mr_attention_locate(a, before, S::tile, false, &p)) return; /* the whole block */
  const head<T> h(a, p, x);
  const int64_t left = p.length - p.first, begin = a.causal ? p.first : 0;
  const int count = left < S::tile ? (int)left : S::tile;
  typename S::sums of_k = {}, of_v = {};
  for (int64_t query = begin; query < p.length; query += S::tile) {
    const int seen = p.length - query < S::tile ? (int)(p.length - query) : S::tile;
    typename S::scores s = {}, d = {};
    for (int from = 0; from < h.columns; from += MR_ATTENTION_CHUNK) {
      const int columns = h.columns - from;
      __syncthreads(); /* all have done with what was staged */
      if (S::chunks > 1 || query == begin) {
        mr_attention_stage<S>(h.k + p.first * a.k_stride + from, a.k_stride, count, columns, keys);
        mr_attention_stage<S>(h.v + p.first * a.v_stride + from, a.v_stride, count, columns,
                              values);
      }
      mr_attention_stage<S>(h.q + query * a.q_stride + from, a.q_stride, seen, columns, queries);
      mr_attention_stage<S>(h.dout + query * h.out_stride + from, h.out_stride, seen, columns, up);
      if (from == 0) {
        A along[S::each], lse[S::each];
        look_up<S>(a, h, query, seen, along, lse);
        MR_CUDA_UNROLL
        for (int i = 0; i < S::each && mr_attention_x() == 0; i++) {
          all_along[mr_attention_y() * S::each + i] = along[i];
          all_lse[mr_attention_y() * S::each + i] = lse[i];
        }
      }
      __syncthreads();
      mr_attention_multiply<S>(keys, queries, columns, s);
      mr_attention_multiply<S>(values, up, columns, d);
    }
    const int behind = query - p.first < S::tile ? (int)(query - p.first) : S::tile;
    MR_CUDA_UNROLL
    for (int j = 0; j < S::each; j++) {
      const int own = mr_attention_x() + j * MR_ATTENTION_SIDE;
      const A along = all_along[own], lse = all_lse[own];
      MR_CUDA_UNROLL
      for (int i = 0; i < S::each; i++) {
        const bool sees = !a.causal || mr_attention_y() * S::each + i <= behind + own;
        s[i][j] = own < seen && sees ? exp(s[i][j] * x.scale - lse) : 0;
        d[i][j] = s[i][j] * (d[i][j] - along) * x.scale;
      }
    }
    if (x.dv != NULL) {
      mr_attention_hand_over<S>(s, weights);
      accumulate<S>(weights, h.dout + query * h.out_stride, h.out_stride, seen, h.columns, up,
                    of_v);
      __syncwarp(); /* the half of the warp has read the weights */
    }
    if (x.dk != NULL) {
      mr_attention_hand_over<S>(d, weights);
      accumulate<S>(weights, h.q + query * a.q_stride, a.q_stride, seen, h.columns, queries, of_k);
    }
  }
  /* one after the other: they may be the same array */
  const int64_t first = p.start + p.first, col = (int64_t)p.head * h.columns;
  if (x.dk != NULL) {
    add<S>(of_k, count, h.columns, a.k_stride, x.dk + first * a.k_stride + col);
  }
  if (x.dv != NULL) {
    add<S>(of_v, count, h.columns, a.v_stride, x.dv + first * a.v_stride + col);
  }
}

template <typename T, int size>
int run(const mr_launch *l, const mr_attention *a, const arrays<T> &x) {
  typedef mr_attention_shape<T, size> S;
  const int bytes = (int)sizeof(typename S::A) * (4 * S::staged + S::weights + 2 * S::tile);
  const cudaStream_t stream = mr_cuda_of(l)->stream;
  const cudaFuncAttribute shared = cudaFuncAttributeMaxDynamicSharedMemorySize;
  int error = (int)cudaFuncSetAttribute(of_queries<T, size>, shared, bytes);
  if (error == 0) error = (int)cudaFuncSetAttribute(of_keys<T, size>, shared, bytes);
  if (error != 0) return error;
  return mr_attention_each(
      l, a, S::tile, [&](const mr_attention &part, const int64_t *before, unsigned blocks) {
        int failed = 0;
        if (x.dq != NULL) {
          failed = MR_CUDA_LAUNCH((of_queries<T, size>), blocks, MR_ATTENTION_THREADS,
                                  (size_t)bytes, stream, part, before, x);
        }
        if (failed != 0 || (x.dk == NULL && x.dv == NULL)) return failed;
        return MR_CUDA_LAUNCH((of_keys<T, size>), blocks, MR_ATTENTION_THREADS, (size_t)bytes,
                              stream, part, before, x);
      });
}

template <typename T>
int attention_backward(const mr_launch *l, const mr_attention *a, const void *q, const void *k,
                       const void *v, const void *out, const void *lse, const void *dout, void *dq,
                       void *dk, void *dv) {
  typedef typename mr_cuda_sum<T>::type A;
  if (a->head_size > MR_HEAD_SIZE_MAX) return mr_cuda_errno(ERANGE);
  if (a->rows == 0 || a->head_size == 0) return 0;
  const arrays<T> x = {
      (const T *)q,    (const T *)k, (const T *)v, (const T *)out, (const A *)lse,
      (const T *)dout, (T *)dq,      (T *)dk,      (T *)dv,        mr_attention_scale<A>(a)};
  return MR_ATTENTION_BY_SIZE(a->head_size, run, l, a, x);
}

template <typename T>
void rows(mr_kernels *k) {
  k->attention_backward = attention_backward<T>;
}

}  // namespace

MR_CUDA_ROWS(attention_backward)
