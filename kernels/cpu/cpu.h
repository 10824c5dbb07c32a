/* The kernels of the processor that runs the program. */
#ifndef MR_CPU_CPU_H
#define MR_CPU_CPU_H

#include "kernels/kernels.h"

/* The table for float or double in the best instruction set that this processor has. It lives as
 * long as the program, and every row of it is present. */
const mr_kernels *mr_cpu_kernels_f32(void);
const mr_kernels *mr_cpu_kernels_f64(void);

/* The table for bf16, of conversions alone. */
const mr_kernels *mr_cpu_kernels_bf16(void);

/* That instruction set: "base", "v3" (AVX2 and FMA) or "v4" (AVX-512). */
const char *mr_cpu_instruction_set(void);

/* OpenBLAS's core and configuration, such as "Zen, OpenBLAS 0.3.21 DYNAMIC_ARCH ...": products
 * have the same bits only where this is the same. */
const char *mr_cpu_blas(void);

/* Tells OpenBLAS to run each product on the thread that asks for it. To be called once, before
 * the first kernel. */
void mr_cpu_prepare(void);

#endif
