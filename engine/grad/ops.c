#include "grad/ops.h"

#include <stddef.h>
#include <string.h>

#include "grad/ops/list.h"

#define ENTRY(name) &mr_op_##name,
static const mr_op *const list[] = {MR_EACH_OP(ENTRY) NULL};

const mr_op *const *mr_ops(void) { return list; }

const mr_op *mr_op_find(const char *name) {
  for (int i = 0; list[i]; i++)
    if (strcmp(list[i]->name, name) == 0) return list[i];
  return NULL;
}
