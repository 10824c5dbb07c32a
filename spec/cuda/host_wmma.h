/* nvcuda::wmma for bf16 -> f32 tiles, for the host. See cuda_host.h.
 *
 * A lane holds 1/32 of a tile's elements, as on a GPU, in an order of this host's own: element e
 * of lane i is number i * (elements of a lane) + e of the tile, by rows. Each call is a meeting of
 * the warp; what it wrote to memory others may read after the next __syncwarp or barrier only. */
#ifndef MR_SPEC_HOST_WMMA_H
#define MR_SPEC_HOST_WMMA_H

#include "host_threads.h"
#include "host_types.h"

namespace nvcuda {
namespace wmma {

struct matrix_a {};
struct matrix_b {};
struct accumulator {};
struct row_major {};
struct col_major {};
enum layout_t { mem_row_major, mem_col_major };

template <typename Use, int m, int n, int k>
struct tile;
template <int m, int n, int k>
struct tile<matrix_a, m, n, k> {
  static const int rows = m, cols = k;
};
template <int m, int n, int k>
struct tile<matrix_b, m, n, k> {
  static const int rows = k, cols = n;
};
template <int m, int n, int k>
struct tile<accumulator, m, n, k> {
  static const int rows = m, cols = n;
};

template <typename Use, int m, int n, int k, typename T, typename Layout = void>
struct fragment {
  static_assert(k == 16 && m * n == 256 && (m == 16 || m == 8 || m == 32), "no tile of bf16");
  typedef tile<Use, m, n, k> extents;
  static const int num_elements = extents::rows * extents::cols / 32;
  T x[num_elements];
};

template <typename Use, int m, int n, int k, typename T, typename Layout>
inline void fill_fragment(fragment<Use, m, n, k, T, Layout> &f, T value) {
  for (T &x : f.x) x = value;
}

template <typename F>
inline ptrdiff_t offset_of(int element, unsigned stride, bool by_rows) {
  const int number = mr_host::lane_index() * F::num_elements + element;
  const int row = number / F::extents::cols, col = number % F::extents::cols;
  return by_rows ? (ptrdiff_t)row * stride + col : (ptrdiff_t)col * stride + row;
}

template <typename F, typename T>
inline void load(mr_host::place at, F &f, const T *from, unsigned stride, bool by_rows) {
  if ((uintptr_t)from % 32 != 0) mr_host::fail(at, "a tile's address is no multiple of 32 bytes");
  if (stride * sizeof(T) % 16 != 0) mr_host::fail(at, "a stride is no multiple of 16 bytes");
  mr_host::meet_warp(at, mr_host::meeting::matrices, ~0U, nullptr, nullptr);
  for (int e = 0; e < F::num_elements; e++) f.x[e] = from[offset_of<F>(e, stride, by_rows)];
}

template <typename Use, int m, int n, int k, typename T, typename Layout>
inline void load_at(mr_host::place at, fragment<Use, m, n, k, T, Layout> &f, const T *from,
                    unsigned stride) {
  load(at, f, from, stride, std::is_same<Layout, row_major>::value);
}

template <int m, int n, int k, typename T>
inline void load_at(mr_host::place at, fragment<accumulator, m, n, k, T> &f, const T *from,
                    unsigned stride, layout_t layout) {
  load(at, f, from, stride, layout == mem_row_major);
}

template <int m, int n, int k, typename T>
inline void store_at(mr_host::place at, T *to, const fragment<accumulator, m, n, k, T> &f,
                     unsigned stride, layout_t layout) {
  typedef fragment<accumulator, m, n, k, T> F;
  if ((uintptr_t)to % 32 != 0) mr_host::fail(at, "a tile's address is no multiple of 32 bytes");
  if (stride * sizeof(T) % 16 != 0) mr_host::fail(at, "a stride is no multiple of 16 bytes");
  mr_host::meet_warp(at, mr_host::meeting::matrices, ~0U, nullptr, nullptr);
  for (int e = 0; e < F::num_elements; e++) {
    to[offset_of<F>(e, stride, layout == mem_row_major)] = f.x[e];
  }
}

/* The fragments of all lanes put together, the product, and the result dealt out. */
template <typename A, typename B, typename C>
struct multiplication {
  const A *a;
  const B *b;
  const C *c;
  C *d;

  static void work(mr_host::place, unsigned, void **all) {
    const int rows = C::extents::rows, cols = C::extents::cols, depth = A::extents::cols;
    float b_tile[B::extents::rows * B::extents::cols], d_tile[rows * cols];
    for (int i = 0; i < B::extents::rows * B::extents::cols; i++) {
      b_tile[i] = (float)of(all, i / B::num_elements)->b->x[i % B::num_elements];
    }
    for (int i = 0; i < rows; i++) {
      float *line = d_tile + i * cols;
      for (int j = 0; j < cols; j++) {
        const int number = i * cols + j;
        line[j] = of(all, number / C::num_elements)->c->x[number % C::num_elements];
      }
      for (int k = 0; k < depth; k++) {
        const int number = i * depth + k;
        const float x = (float)of(all, number / A::num_elements)->a->x[number % A::num_elements];
        for (int j = 0; j < cols; j++) line[j] += x * b_tile[k * cols + j];
      }
    }
    for (int i = 0; i < rows * cols; i++) {
      of(all, i / C::num_elements)->d->x[i % C::num_elements] = d_tile[i];
    }
  }

 private:
  static multiplication *of(void **all, int lane) { return (multiplication *)all[lane]; }
};

template <int m, int n, int k, typename LayoutA, typename LayoutB>
inline void mma_at(mr_host::place at, fragment<accumulator, m, n, k, float> &d,
                   const fragment<matrix_a, m, n, k, __nv_bfloat16, LayoutA> &a,
                   const fragment<matrix_b, m, n, k, __nv_bfloat16, LayoutB> &b,
                   const fragment<accumulator, m, n, k, float> &c) {
  typedef multiplication<fragment<matrix_a, m, n, k, __nv_bfloat16, LayoutA>,
                         fragment<matrix_b, m, n, k, __nv_bfloat16, LayoutB>,
                         fragment<accumulator, m, n, k, float>>
      mine_type;
  mine_type mine = {&a, &b, &c, &d};
  mr_host::meet_warp(at, mr_host::meeting::matrices, ~0U, &mine, mine_type::work);
}

}  // namespace wmma
}  // namespace nvcuda

/* So that these know where they were called. */
#define load_matrix_sync(...) load_at(MR_HOST_HERE, __VA_ARGS__)
#define store_matrix_sync(...) store_at(MR_HOST_HERE, __VA_ARGS__)
#define mma_sync(...) mma_at(MR_HOST_HERE, __VA_ARGS__)

#endif
