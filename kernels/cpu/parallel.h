/* How rows share work among threads.
 *
 * Invariant: work is cut by shape alone, into pieces that write different outputs, and a piece
 * never knows which thread runs it. So the number of threads changes no bit. */
#ifndef MR_CPU_PARALLEL_H
#define MR_CPU_PARALLEL_H

#include <stdint.h>

#include "kernels/kernels.h"

enum {
  MR_BLOCK = 4096,       /* elements of a piece of a plain array */
  MR_RUN = 512,          /* elements of a long row that are summed before they join its sum */
  MR_COLUMNS = 64,       /* columns of a piece that is summed over its rows */
  MR_SERIAL_WORK = 16384 /* below this, waking threads costs more than it saves */
};

/* Threads for `work` element operations (an exponential counts as about eight). */
static inline int mr_threads(const mr_launch *l, int64_t work) {
  return work < MR_SERIAL_WORK ? 1 : l->threads;
}

/* Does a statement for first = 0, step, 2 step, ... below n: shared among threads, or, where one
 * does it all, without a parallel region, which takes longer than some whole small operations. */
#define MR_EACH_PIECE(l, work, first, n, step, ...)                                \
  do {                                                                             \
    const int mr_threads_ = mr_threads(l, work);                                   \
    if (mr_threads_ == 1) {                                                        \
      for (int64_t first = 0; first < (n); first += (step)) __VA_ARGS__;           \
    } else {                                                                       \
      MR_SHARED for (int64_t first = 0; first < (n); first += (step)) __VA_ARGS__; \
    }                                                                              \
  } while (0)
#define MR_SHARED _Pragma("omp parallel for num_threads(mr_threads_) schedule(static)")

static inline int64_t mr_min(int64_t a, int64_t b) { return a < b ? a : b; }

static inline int64_t mr_max(int64_t a, int64_t b) { return a > b ? a : b; }

#endif
