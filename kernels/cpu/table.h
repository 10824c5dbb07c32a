/* The tables of all variants; which of them exist depends on the processor family built for. */
#ifndef MR_CPU_TABLE_H
#define MR_CPU_TABLE_H

#include "kernels/kernels.h"

extern const mr_kernels mr_cpu_table_f32_base, mr_cpu_table_f64_base;
extern const mr_kernels mr_cpu_table_f32_v3, mr_cpu_table_f64_v3; /* x86-64 with AVX2 and FMA */
extern const mr_kernels mr_cpu_table_f32_v4, mr_cpu_table_f64_v4; /* x86-64 with AVX-512 */

#endif
