/* The table of one variant. */
#include "kernels/cpu/table.h"

#include "kernels/cpu/rows.h"

#define MR_TEXT(x) #x
#define MR_TEXT_EXPANDED(x) MR_TEXT(x)
#define MR_CPU_ENTRY(row) .row = MR_ROW(row),

const mr_kernels MR_ROW(table) = {
    .name = "cpu-" MR_TEXT_EXPANDED(MR_ISA) " " MR_TEXT_EXPANDED(MR_REAL_NAME),
    MR_CPU_ROWS(MR_CPU_ENTRY)};
