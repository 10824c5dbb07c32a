/* What layer_norm keeps for its backward, for those that run it together with another. */
#ifndef MR_GRAD_OPS_LAYER_NORM_H
#define MR_GRAD_OPS_LAYER_NORM_H

#include "grad/op.h"

enum { MR_LAYER_NORM_X, MR_LAYER_NORM_W, MR_LAYER_NORM_B, MR_LAYER_NORM_EPSILON };
enum { MR_LAYER_NORM_MEAN, MR_LAYER_NORM_RSTD }; /* saved, one value for each row */

/* Makes the two saved tensors. */
mr_status mr_layer_norm_save(mr_call *call);

#endif
