#include "grad/apart.h"

#include <stddef.h>

#include "base/memory.h"

typedef struct mr_apart mr_apart;
struct mr_apart {
  mr_tensor *given;    /* owned */
  mr_tensor *gradient; /* borrowed from its tensor, which the call holds */
  mr_apart *next;
};

mr_status mr_apart_place(mr_call *call, mr_tensor *gradient, mr_dtype given, void **pointer) {
  void *block = NULL;
  if (gradient->dtype == given) {
    *pointer = mr_tensor_data(gradient);
    return MR_OK;
  }
  MR_TRY(mr_memory_allocate(sizeof(mr_apart), &block));
  mr_apart *apart = block;
  apart->gradient = gradient;
  apart->next = call->apart;
  call->apart = apart;
  MR_TRY(mr_tensor_new(call->device, given, &gradient->shape, &apart->given));
  *pointer = mr_tensor_data(apart->given);
  return MR_OK;
}

static mr_status add(const mr_call *call, const mr_apart *apart) {
  mr_tensor *converted = NULL;
  MR_TRY(mr_tensor_convert(apart->given, apart->gradient->dtype, &converted));
  mr_status status = MR_KERNEL(call->device, converted->dtype, add_scaled, converted->count, 1.0,
                               mr_tensor_data(converted), mr_tensor_data(apart->gradient));
  mr_tensor_release(converted);
  return status;
}

mr_status mr_apart_settle(mr_call *call, mr_status status) {
  while (call->apart) {
    mr_apart *apart = call->apart;
    call->apart = apart->next;
    if (status == MR_OK) status = add(call, apart);
    mr_tensor_release(apart->given);
    mr_memory_release(apart);
  }
  return status;
}
