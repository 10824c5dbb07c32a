#include "grad/ops/ids.h"

mr_status mr_check_ids(mr_call *call, int i, int64_t limit, int32_t exception) {
  const mr_tensor *ids = call->tensor[i];
  mr_host_values values;
  MR_TRY(mr_tensor_host_sync(ids, &values)); /* of integers, never owned */
  const int32_t *id = values.data;
  for (int64_t row = 0; row < ids->count; row++) {
    if (id[row] >= 0 && id[row] < limit) continue;
    if (exception < 0 && id[row] == exception) continue;
    return mr_fail(MR_ERROR_CONTENT, "%s: %s[%lld] is %d, outside 0 to %lld%s", call->op->name,
                   call->op->argument[i].name, (long long)row + 1, (int)id[row],
                   (long long)limit - 1, exception < 0 ? " and not -100 (ignored)" : "");
  }
  return MR_OK;
}
