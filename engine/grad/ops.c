#include "grad/ops.h"

#include <stddef.h>

#include "grad/ops/list.h"

#define ENTRY(name) &mr_op_##name,
static const mr_op *const list[] = {MR_EACH_OP(ENTRY) NULL};

const mr_op *const *mr_ops(void) { return list; }
