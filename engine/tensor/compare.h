/* Comparison of two gradients, component by component, under an absolute plus relative gate. */
#ifndef MR_TENSOR_COMPARE_H
#define MR_TENSOR_COMPARE_H

#include <stdint.h>

#include "base/status.h"
#include "tensor/tensor.h"

/* Component i holds when |a - b| <= absolute + relative |b|. */
typedef struct mr_gate {
  double absolute, relative;
} mr_gate;

/* A component that misses the gate is excused as rounding when it misses by no more than
 * `factor` * scale[i] and holds under `gate` in the pair (a, b), computed in a wider dtype. */
typedef struct mr_excuse {
  double factor;
  const mr_tensor *scale;
  const mr_tensor *a, *b;
  mr_gate gate;
} mr_excuse;

/* Components are counted by their share of the gate, |a - b| / (absolute + relative |b|): shares[0]
 * have none, shares[i] at most mr_share_edges[i], and the last lie beyond all edges. */
enum { MR_SHARE_EDGES = 11, MR_SHARE_COUNT = MR_SHARE_EDGES + 1 };
extern const double mr_share_edges[MR_SHARE_EDGES];

typedef struct mr_comparison {
  int64_t count, failing, rounding;
  double max_abs, max_rel; /* max_rel over components with b != 0 */
  double max_b;            /* largest |b| that is finite */
  int64_t worst;           /* component with the largest |a - b| / gate; -1 when count is 0 */
  double worst_a, worst_b;
  double dot_ab, dot_bb; /* sums of a b and b b: their ratio is the one factor between a and b */
  int64_t shares[MR_SHARE_COUNT];
} mr_comparison;

/* Compares tensors of reals, of any devices, with equal counts; dtypes may differ. A component that
 * is not finite on either side fails. `excuse` may be NULL. Errors: MR_ERROR_ARGUMENT. */
mr_status mr_tensor_compare_sync(const mr_tensor *a, const mr_tensor *b, mr_gate gate,
                                 const mr_excuse *excuse, mr_comparison *result);

/* sum[i] += |x[i]|; equal counts and dtypes. */
mr_status mr_tensor_add_absolute_sync(mr_tensor *sum, const mr_tensor *x);

#endif
