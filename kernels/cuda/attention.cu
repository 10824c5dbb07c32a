/* Attention by tiles, with a running softmax (Dao, Fu, Ermon, Rudra, Ré: "FlashAttention", 2022).
 *
 * Nothing larger than a tile of scores is ever stored, and tiles beyond the causal diagonal are
 * never visited. Keys are taken in their order, so the bits follow from the lengths alone. */
#include "kernels/cuda/attention.h"
#include "kernels/cuda/table.h"

namespace {

template <typename T>
struct arrays {
  const T *q, *k, *v;
  T *out;
  typename mr_cuda_sum<T>::type *lse, scale;
};

/* What the running softmax knows of a thread's rows; sum: over its own columns. */
template <typename S>
struct running {
  typename S::A highest[S::each], sum[S::each];
};

/* Scores become e^(score - highest); output so far is scaled to the new highest. Keys from `seen`
 * on are hidden, and with `causal` keys further than `ahead` before the row's number. */
template <typename S>
__device__ inline void soften(typename S::scores &s, typename S::A scale, int seen, bool causal,
                              int ahead, running<S> &r, typename S::sums &out) {
  typedef typename S::A A;
  MR_CUDA_UNROLL
  for (int i = 0; i < S::each; i++) {
    const int last = causal ? ahead + mr_attention_y() * S::each + i : S::tile;
    A top = r.highest[i];
    MR_CUDA_UNROLL
    for (int j = 0; j < S::each; j++) {
      const int key = mr_attention_x() + j * MR_ATTENTION_SIDE;
      s[i][j] = key < seen && key <= last ? s[i][j] * scale : (A)-INFINITY;
      top = max(top, s[i][j]);
    }
    MR_CUDA_UNROLL
    for (int bits = 8; bits > 0; bits /= 2) {
      top = max(top, __shfl_xor_sync(0xffffffffU, top, bits));
    }
    const A factor = exp(r.highest[i] - top);
    r.highest[i] = top;
    r.sum[i] *= factor;
    MR_CUDA_UNROLL
    for (int j = 0; j < S::each; j++) {
      s[i][j] = exp(s[i][j] - top);
      r.sum[i] += s[i][j];
    }
    MR_CUDA_UNROLL
    for (int m = 0; m < S::chunks; m++) {
      MR_CUDA_UNROLL
      for (int c = 0; c < S::own; c++) out[m][i][c] *= factor;
    }
  }
}

/* Writes out and lse of the thread's rows of the `count` that there are. */
template <typename S, typename T>
__device__ inline void finish(const mr_attention &a, const mr_attention_place &p, int count,
                              const arrays<T> &x, const running<S> &r,
                              const typename S::sums &out) {
  const int size = (int)a.head_size;
  MR_CUDA_UNROLL
  for (int i = 0; i < S::each; i++) {
    const typename S::A sum = mr_attention_sum(r.sum[i]), share = 1 / sum;
    const int own = mr_attention_y() * S::each + i;
    if (own >= count) continue;
    const int64_t row = (p.start + p.first + own) * a.heads + p.head;
    if (mr_attention_x() == 0) x.lse[row] = r.highest[i] + log(sum);
    MR_CUDA_UNROLL
    for (int m = 0; m < S::chunks; m++) {
      MR_CUDA_UNROLL
      for (int c = 0; c < S::own; c++) {
        const int col = m * MR_ATTENTION_CHUNK + mr_attention_column<S>(c);
        if (col < size) x.out[row * size + col] = mr_down<T>(out[m][i][c] * share);
      }
    }
  }
}

/* A block: one tile of queries of one head. Shared: staged tiles of queries, keys and values, and
 * the weights. Heads of more than a chunk are staged again for each tile of keys. */
template <typename T, int size>
__global__ void __launch_bounds__(MR_ATTENTION_THREADS, size == 64 ? 2 : 1)
    forward(mr_attention a, const int64_t *before, arrays<T> x) {
  typedef mr_attention_shape<T, size> S;
  MR_CUDA_SHARED_DYNAMIC(typename S::A, shared);
  typename S::A *queries = shared, *keys = queries + S::staged, *values = keys + S::staged,
                *weights = values + S::staged;
  mr_attention_place p;
  if (!mr_attention_locate(a, before, S::tile, true, &p)) return; /* the whole block */
  const int columns = (int)a.head_size;
  const T *q = x.q + (p.start + p.first) * a.q_stride + (int64_t)p.head * columns;
  const T *k = x.k + p.start * a.k_stride + (int64_t)p.head * columns;
  const T *v = x.v + p.start * a.v_stride + (int64_t)p.head * columns;
  const int64_t left = p.length - p.first, bound = a.causal ? p.first + S::tile : p.length;
  const int64_t end = bound < p.length ? bound : p.length;
  const int count = left < S::tile ? (int)left : S::tile;
  running<S> r;
  typename S::sums out = {};
  for (int i = 0; i < S::each; i++) {
    r.highest[i] = (typename S::A) - INFINITY;
    r.sum[i] = 0;
  }
  for (int64_t key = 0; key < end; key += S::tile) {
    const int seen = end - key < S::tile ? (int)(end - key) : S::tile;
    typename S::scores s = {};
    for (int from = 0; from == 0 || from < columns; from += MR_ATTENTION_CHUNK) {
      __syncthreads(); /* all have done with what was staged */
      if (S::chunks > 1 || key == 0) {
        mr_attention_stage<S>(q + from, a.q_stride, count, columns - from, queries);
      }
      mr_attention_stage<S>(k + key * a.k_stride + from, a.k_stride, seen, columns - from, keys);
      if (S::chunks == 1) {
        mr_attention_stage<S>(v + key * a.v_stride, a.v_stride, seen, columns, values);
      }
      __syncthreads();
      mr_attention_multiply<S>(queries, keys, columns - from, s);
    }
    const int64_t ahead = p.first - key; /* at most S::tile matters */
    soften<S>(s, x.scale, seen, a.causal != 0, ahead < S::tile ? (int)ahead : S::tile, r, out);
    mr_attention_hand_over<S>(s, weights);
    MR_CUDA_UNROLL
    for (int m = 0; m < S::chunks; m++) {
      const int from = m * MR_ATTENTION_CHUNK;
      if (from >= columns) break;
      if (S::chunks > 1) {
        if (m > 0) __syncthreads();
        mr_attention_stage<S>(v + key * a.v_stride + from, a.v_stride, seen, columns - from,
                              values);
        __syncthreads();
      }
      mr_attention_accumulate<S>(weights, values, seen, out[m]);
    }
  }
  finish<S>(a, p, count, x, r, out);
}

template <typename T, int size>
int run(const mr_launch *l, const mr_attention *a, const arrays<T> &x) {
  typedef mr_attention_shape<T, size> S;
  const int bytes = (int)sizeof(typename S::A) * (3 * S::staged + S::weights);
  int error = (int)cudaFuncSetAttribute(forward<T, size>,
                                        cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  if (error != 0) return error;
  return mr_attention_each(
      l, a, S::tile, [&](const mr_attention &part, const int64_t *before, unsigned blocks) {
        return MR_CUDA_LAUNCH((forward<T, size>), blocks, MR_ATTENTION_THREADS, (size_t)bytes,
                              mr_cuda_of(l)->stream, part, before, x);
      });
}

/* Rows of no sequence stay zeros: which they are only the device knows. */
template <typename T>
int attention(const mr_launch *l, const mr_attention *a, const void *q, const void *k,
              const void *v, void *out, void *lse) {
  typedef typename mr_cuda_sum<T>::type A;
  if (a->head_size > MR_HEAD_SIZE_MAX) return mr_cuda_errno(ERANGE);
  const size_t rows = (size_t)(a->rows * a->heads);
  if (rows == 0) return 0;
  const cudaStream_t stream = mr_cuda_of(l)->stream;
  int error = (int)cudaMemsetAsync(lse, 0, rows * sizeof(A), stream);
  if (error == 0 && a->head_size > 0) {
    error = (int)cudaMemsetAsync(out, 0, rows * (size_t)a->head_size * sizeof(T), stream);
  }
  if (error != 0) return error;
  const arrays<T> x = {(const T *)q, (const T *)k, (const T *)v,
                       (T *)out,     (A *)lse,     mr_attention_scale<A>(a)};
  return MR_ATTENTION_BY_SIZE(a->head_size, run, l, a, x);
}

template <typename T>
void rows(mr_kernels *k) {
  k->attention = attention<T>;
}

}  // namespace

MR_CUDA_ROWS(attention)
