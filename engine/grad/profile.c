#include "grad/profile.h"

#include <stddef.h>

mr_profile_row *mr_profile_find(mr_profile *profile, const mr_op *op) {
  for (int i = 0; i < profile->rows; i++)
    if (profile->row[i].op == op) return &profile->row[i];
  if (profile->rows == MR_PROFILE_OPS) return NULL;
  mr_profile_row *made = &profile->row[profile->rows++];
  *made = (mr_profile_row){.op = op};
  return made;
}
