/* Attention over packed sequences, and its gradient. */
#include "kernels/cuda/errors.h"
#include "rows.h"

using rows::array;
using rows::bench;

/* Sequences by their lengths, each `gap` rows behind the one before. */
struct packing {
  std::vector<int64_t> lengths;
  int64_t gap;
  int64_t heads, size;
  bool causal;
  int64_t wider; /* columns by which rows of q, k and v are longer than heads * size */
};

template <typename T>
struct made {
  mr_attention a;
  array *starts, *lengths, *q, *k, *v, *out, *lse;
};

template <typename T>
static made<T> make(bench<T> &b, const packing &p) {
  made<T> m;
  std::vector<int64_t> starts;
  int64_t rows = 0;
  for (int64_t length : p.lengths) {
    starts.push_back(rows += p.gap);
    rows += length;
  }
  const int64_t columns = p.heads * p.size, stride = columns + p.wider;
  m.a = {rows,   p.heads, p.size,  (int64_t)p.lengths.size(), nullptr, nullptr, stride,
         stride, stride,  p.causal};
  m.starts = &b.longs(starts);
  m.lengths = &b.longs(p.lengths);
  m.q = &b.reals(rows * stride, 2);
  m.k = &b.reals(rows * stride, 2);
  m.v = &b.reals(rows * stride);
  m.out = &b.unset(rows * columns);
  m.lse = &b.unset_wide(rows * p.heads);
  return m;
}

/* The layout, with its lists where the device or the processor has them. */
template <typename T, typename At>
static mr_attention layout(const made<T> &m, At at) {
  mr_attention a = m.a;
  a.starts = (const int64_t *)at(m.starts);
  a.lengths = (const int64_t *)at(m.lengths);
  return a;
}

/* An errno as the processor returns it. */
static int plain(int error) { return error >= MR_CUDA_ERRNO ? error - MR_CUDA_ERRNO : error; }

template <typename T>
static void compare_forward(bench<T> &b, const made<T> &m) {
  b.compare("attention", &mr_kernels::attention, 30, {m.out, m.lse},
            [=](auto row, auto l, auto at) {
              const mr_attention a = layout(m, at);
              return plain(row(l, &a, at(m.q), at(m.k), at(m.v), at(m.out), at(m.lse)));
            });
}

/* Puts the out and lse that the processor's forward gives into their arrays. */
template <typename T>
static void fill_in(bench<T> &b, const made<T> &m) {
  typedef typename bench<T>::W W;
  const auto wide = [](const array *a) {
    const T *from = (const T *)a->bytes.data();
    return std::vector<W>(from, from + a->bytes.size() / sizeof(T));
  };
  const std::vector<W> q = wide(m.q), k = wide(m.k), v = wide(m.v);
  std::vector<W> out(m.out->bytes.size() / sizeof(T));
  const mr_attention a = layout(m, [](array *list) { return list->bytes.data(); });
  (void)b.cpu->attention(&b.r.cpu_launch, &a, q.data(), k.data(), v.data(), out.data(),
                         m.lse->bytes.data());
  for (size_t i = 0; i < out.size(); i++) ((T *)m.out->bytes.data())[i] = (T)out[i];
}

template <typename T>
static void compare_backward(bench<T> &b, const made<T> &m, array *dq, array *dk, array *dv,
                             const std::vector<array *> &outputs, array *up) {
  b.compare("attention_backward", &mr_kernels::attention_backward, 100, outputs,
            [=](auto row, auto l, auto at) {
              const mr_attention a = layout(m, at);
              return plain(row(l, &a, at(m.q), at(m.k), at(m.v), at(m.out), at(m.lse), at(up),
                               at(dq), at(dk), at(dv)));
            });
}

template <typename T>
static void attention_case(bench<T> &b, const packing &p, const std::vector<int> &all_given) {
  const made<T> m = make(b, p);
  compare_forward(b, m);
  if (p.size <= MR_HEAD_SIZE_MAX) fill_in(b, m);
  const int64_t reals = m.a.rows * m.a.q_stride;
  array *up = &b.reals(m.a.rows * p.heads * p.size), *no = nullptr;
  array *dq = &b.reals(reals), *dk = &b.reals(reals), *dv = &b.reals(reals);
  for (int given : all_given) {
    compare_backward(b, m, (given & 1) != 0 ? dq : no, (given & 2) != 0 ? dk : no,
                     (given & 4) != 0 ? dv : no, {dq, dk, dv}, up);
  }
  b.clear();
}

/* Lengths on both sides of tiles of 16, 32 and 64 rows, of 0 and 1; gaps; rows with other columns
 * behind the heads'. */
template <typename T>
static void lengths(bench<T> &b) {
  for (bool causal : {true, false}) {
    attention_case(b, {{5}, 0, 1, 1, causal, 0}, {1, 2, 3, 4, 5, 6, 7});
    attention_case(b, {{1, 0, 3, 70}, 2, 2, 5, causal, 3}, {1, 2, 3, 4, 5, 6, 7});
    attention_case(b, {{131, 64, 32}, 0, 1, 33, causal, 0}, {7});
    attention_case(b, {{}, 0, 2, 8, causal, 0}, {7});
    attention_case(b, {{0, 0}, 3, 2, 8, causal, 0}, {7});
  }
}
ROWS(lengths)

/* Heads of one chunk and of several, whole or not, of each of the four kinds of kernel. */
template <typename T>
static void head_sizes(bench<T> &b) {
  attention_case(b, {{67}, 0, 1, 64, true, 0}, {7});
  attention_case(b, {{3, 97}, 1, 1, 67, true, 1}, {3, 7});
  attention_case(b, {{66}, 0, 1, 128, false, 0}, {7});
  attention_case(b, {{66}, 0, 1, 131, true, 0}, {7});
  attention_case(b, {{34, 2}, 0, 1, 257, true, 0}, {4, 7});
  attention_case(b, {{33}, 0, 1, 512, false, 0}, {7});
  attention_case(b, {{4}, 0, 1, 513, true, 0}, {7});
}
ROWS(head_sizes)

/* More sequences than a warp, and than the threads that count their tiles. */
template <typename T>
static void many_sequences(bench<T> &b) {
  std::vector<int64_t> all;
  for (int64_t i = 0; i < 600; i++) all.push_back(i % 4);
  attention_case(b, {all, 0, 1, 3, true, 0}, {7});
}
ROWS(many_sequences)

/* Gradients may be one array where q, k and v are. */
template <typename T>
static void one_array(bench<T> &b) {
  made<T> m = make(b, {{37, 3}, 0, 2, 9, true, 0});
  m.k = m.v = m.q;
  fill_in(b, m);
  array *up = &b.reals(m.a.rows * 18), *dx = &b.reals(m.a.rows * 18);
  compare_backward(b, m, dx, dx, dx, {dx}, up);
  b.clear();
}
ROWS(one_array)
