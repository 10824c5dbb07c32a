/* What each file of rows is compiled with. CMake compiles it once per real type and instruction
 * set and sets MR_REAL_BITS (32 or 64) and MR_ISA (base, v3 or v4); MR_ROW makes the names of the
 * variants differ, as in mr_cpu_relu_f32_v3. */
#ifndef MR_CPU_REAL_H
#define MR_CPU_REAL_H

#ifndef MR_REAL_BITS
#define MR_REAL_BITS 32
#endif
#ifndef MR_ISA
#define MR_ISA base
#endif

#if MR_REAL_BITS == 64
typedef double real;
#define MR_REAL_NAME f64
#else
typedef float real;
#define MR_REAL_NAME f32
#endif

#define MR_JOIN(row, type, isa) mr_cpu_##row##_##type##_##isa
#define MR_JOIN_EXPANDED(row, type, isa) MR_JOIN(row, type, isa)
#define MR_ROW(row) MR_JOIN_EXPANDED(row, MR_REAL_NAME, MR_ISA)

#endif
