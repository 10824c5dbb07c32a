/* Zeroes elements at random and scales the others by 1 / (1 - probability).
 *
 * The draw of an element depends on where it is (mr_dropout), not on when it is drawn: see
 * kernels/philox.h for the mapping. One Philox block serves four channels, and so does a thread. */
#include "kernels/cuda/each.h"
#include "kernels/cuda/real.h"
#include "kernels/cuda/table.h"
#include "kernels/philox.h"

namespace {

/* Quad i is four channels of a row, or fewer at its end: y = mask x, or y += mask x. */
template <typename T, bool add>
struct masked {
  typedef typename mr_cuda_sum<T>::type A;
  int64_t cols, quads; /* in a row */
  A scale;
  uint32_t threshold, seed, layer, update;
  const int64_t *ids;
  const int32_t *positions;
  const T *x; /* may be y */
  T *y;

  __device__ void operator()(int64_t i) const {
    const mr_cuda_place place = mr_place(i, quads);
    const uint32_t key[2] = {seed, layer};
    const uint32_t counter[4] = {update, mr_philox_word((uint64_t)ids[place.row]),
                                 (uint32_t)positions[place.row], (uint32_t)place.col};
    uint32_t words[4];
    mr_philox(key, counter, words);
    MR_CUDA_UNROLL
    for (int j = 0; j < 4; j++) {
      const int64_t col = place.col * 4 + j;
      if (col >= cols) return;
      const int64_t at = place.row * cols + col;
      const A value = words[j] < threshold ? A(0) : scale * mr_up(x[at]);
      y[at] = mr_down<T>(add ? mr_up(y[at]) + value : value);
    }
  }
};

template <typename T, bool add>
int mask(const mr_launch *l, int64_t rows, int64_t cols, const mr_dropout *d, const void *x,
         void *y) {
  const int64_t quads = mr_cuda_pieces(cols, 4);
  const masked<T, add> f = {cols,
                            quads,
                            (typename mr_cuda_sum<T>::type)(1 / (1 - d->probability)),
                            mr_philox_threshold(d->probability),
                            mr_philox_word(d->seed),
                            mr_philox_word(d->layer),
                            mr_philox_word(d->update),
                            d->ids,
                            d->positions,
                            (const T *)x,
                            (T *)y};
  return mr_cuda_each(l, rows * quads, f);
}

template <typename T>
int dropout(const mr_launch *l, int64_t rows, int64_t cols, const mr_dropout *d, const void *x,
            void *y) {
  return mask<T, false>(l, rows, cols, d, x, y);
}

template <typename T>
int dropout_backward(const mr_launch *l, int fresh, int64_t rows, int64_t cols, const mr_dropout *d,
                     const void *dy, void *dx) {
  return fresh ? mask<T, false>(l, rows, cols, d, dy, dx) : mask<T, true>(l, rows, cols, d, dy, dx);
}

template <typename T>
void rows(mr_kernels *k) {
  k->dropout = dropout<T>;
  k->dropout_backward = dropout_backward<T>;
}

}  // namespace

MR_CUDA_ROWS(dropout)
