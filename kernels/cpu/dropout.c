/* Zeroes elements at random and scales the others by 1 / (1 - probability).
 *
 * The draw of an element depends on where it is (mr_dropout), not on when it is drawn: see
 * kernels/philox.h for the mapping. One Philox block serves four channels. */
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/rows.h"
#include "kernels/philox.h"

enum { CHANNELS = 64 }; /* of a row, drawn together */

/* words[j] = the random word of channel first + j of the row that key and counter tell */
static void draw(const uint32_t key[2], const uint32_t counter[4], int64_t first,
                 uint32_t words[CHANNELS]) {
  for (uint32_t block = 0; block < CHANNELS / 4; block++) {
    const uint32_t at[4] = {counter[0], counter[1], counter[2], (uint32_t)(first / 4) + block};
    mr_philox(key, at, words + (int64_t)block * 4);
  }
}

/* mask[j] = scale or 0 for channels first .. first + CHANNELS - 1 of a row */
static void masks(const mr_dropout *d, int64_t row, int64_t first, real mask[CHANNELS]) {
  const uint32_t key[2] = {mr_philox_word(d->seed), mr_philox_word(d->layer)};
  const uint32_t counter[4] = {mr_philox_word(d->update), mr_philox_word((uint64_t)d->ids[row]),
                               (uint32_t)d->positions[row], 0};
  const uint32_t threshold = mr_philox_threshold(d->probability);
  const real scale = (real)(1 / (1 - d->probability));
  uint32_t words[CHANNELS];
  draw(key, counter, first, words);
  for (int64_t j = 0; j < CHANNELS; j++) mask[j] = words[j] < threshold ? 0 : scale;
}

int MR_ROW(dropout)(const mr_launch *l, int64_t rows, int64_t cols, const mr_dropout *d,
                    const void *x, void *y) {
#pragma omp parallel for num_threads(mr_threads(l, 8 * rows * cols)) schedule(static)
  for (int64_t row = 0; row < rows; row++) {
    const real *from = (const real *)x + row * cols;
    real *to = (real *)y + row * cols;
    for (int64_t first = 0; first < cols; first += CHANNELS) {
      real mask[CHANNELS];
      masks(d, row, first, mask);
      const int64_t count = mr_min(CHANNELS, cols - first);
      for (int64_t j = 0; j < count; j++) {
        to[first + j] = mask[j] == 0 ? 0 : mask[j] * from[first + j];
      }
    }
  }
  return 0;
}

int MR_ROW(dropout_backward)(const mr_launch *l, int fresh, int64_t rows, int64_t cols,
                             const mr_dropout *d, const void *dy, void *dx) {
#pragma omp parallel for num_threads(mr_threads(l, 8 * rows * cols)) schedule(static)
  for (int64_t row = 0; row < rows; row++) {
    const real *from = (const real *)dy + row * cols;
    real *to = (real *)dx + row * cols;
    for (int64_t first = 0; first < cols; first += CHANNELS) {
      real mask[CHANNELS];
      masks(d, row, first, mask);
      const int64_t count = mr_min(CHANNELS, cols - first);
      for (int64_t j = 0; j < count; j++) {
        const real part = mask[j] == 0 ? 0 : mask[j] * from[first + j];
        to[first + j] = fresh ? part : to[first + j] + part;
      }
    }
  }
  return 0;
}
