/* Gradients that a call's backward gives in another dtype than they are kept in. A leaf of bf16
 * keeps its gradient in f32, and kernels give gradients of weights in f32, those of other arguments
 * in bf16 (kernels.h): where the two do not meet, the call gets memory apart, which is added to the
 * gradient once it is done. Internal to the grad floor. */
#ifndef MR_GRAD_APART_H
#define MR_GRAD_APART_H

#include "grad/op.h"

/* Points at where the call is to add the gradient of `gradient`'s tensor, in `given`: at that
 * gradient itself where it is of this dtype, else at zeros. */
mr_status mr_apart_place(mr_call *call, mr_tensor *gradient, mr_dtype given, void **pointer);

/* Adds to the gradients what was given apart; frees it, also after a failure of the call. */
mr_status mr_apart_settle(mr_call *call, mr_status status);

#endif
