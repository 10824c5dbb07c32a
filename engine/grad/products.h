/* The matrix products behind a loss, and nothing else of it: what a step cannot do without. They
 * are read off the recorded calls once, then run on memory of their own through the device's own
 * kernels: the same BLAS, tiles and threads. So their time is a floor under the time of a step.
 *
 * A linear map has three products (one forward, two backward), attention six for each head of each
 * sequence (two forward, four backward), each over all pairs of rows, causal or not. */
#ifndef MR_GRAD_PRODUCTS_H
#define MR_GRAD_PRODUCTS_H

#include "base/status.h"
#include "grad/tape.h"

typedef struct mr_products mr_products;

/* The products of the forward and the backward of everything that `root` depends on, which stays
 * as it is. Release with mr_products_release. Errors: MR_ERROR_ARGUMENT for a root without a
 * graph, MR_ERROR_MEMORY. */
mr_status mr_products_new(mr_tape *tape, mr_tensor *root, mr_products **products);
void mr_products_release(mr_products *products);

/* Works them all out once, in the order of the recording; done at return. */
mr_status mr_products_run_sync(mr_products *products);

/* Multiplications and additions of one run, by kind: single products and batches of small ones. */
double mr_products_operations(const mr_products *products, int batched);

/* Number of distinct entries, and the shape of one. */
int64_t mr_products_count(const mr_products *products);
mr_product_shape mr_products_shape(const mr_products *products, int64_t i);

#endif
