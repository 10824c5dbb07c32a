/* Sequences packed into rows: sequence s covers rows starts[s] .. starts[s] + lengths[s] - 1. */
#ifndef MR_GRAD_OPS_PACKING_H
#define MR_GRAD_OPS_PACKING_H

#include "grad/op.h"

/* Checks the i64 arguments `lengths` and `starts` (which may be absent: then sequences lie end to
 * end from row 0) against `rows`: vectors of one size; lengths of at least 0; every sequence
 * within the rows; no two overlap. MR_ERROR_ARGUMENT naming the sequence, from 1, and its values.
 */
mr_status mr_packing_check(const mr_call *call, int lengths, int starts, int64_t rows);

/* Saves the starts of sequences that lie end to end in `slot`: i64, as many as `lengths`. */
mr_status mr_packing_save_starts(mr_call *call, int lengths, int slot);

/* The products of attention, forward and backward, over all pairs of rows of each sequence: scores
 * and mix; then the gradients of probabilities, values, queries and keys. */
mr_status mr_packing_products(const mr_call *call, int lengths, const mr_attention *layout,
                              mr_product_visit visit, void *context);

#endif
