/* CUDA, for kernels and for the device that runs them: the only header of NVIDIA's world that
 * they include. With MR_CUDA_HOST defined it is a test's header instead (spec/cuda/cuda_host.h,
 * found by the include path), which does the same on the processor, without a toolkit.
 *
 * How a kernel is written
 *
 *   - A file per operation, kernels/cuda/<op>.cu, as kernels/cpu/<op>.c: kernels and rows are
 *     templates over the real type T in an anonymous namespace, and the file ends in
 *
 *       template <typename T>
 *       void rows(mr_kernels *k) {
 *         k->softmax = softmax<T>;
 *       }
 *       }  // namespace
 *       MR_CUDA_ROWS(softmax)
 *
 *     (table.h), which puts its rows into the tables of f32, f64 and bf16. Then its name goes into
 *     MR_CUDA_FILES there.
 *   - A row has the signature of kernels.h. Arrays, also those that a parameter struct points to
 *     (ids, starts, lengths), and scalars that are written (`double *y`) lie in memory of the
 *     device; the struct itself and plain numbers are the host's. A row only puts work into the
 *     stream and returns: it never waits, allocates or copies from the host.
 *   - `mr_cuda_of(l)` (stream.h) is the stream, cuBLAS, its workspace, and scratch memory for
 *     partial results, whose contents last until the row returns.
 *   - Launch with MR_CUDA_LAUNCH(kernel, grid, block, shared_bytes, stream, arguments...), never
 *     with <<<>>>. It is an expression: 0 or a cudaError_t, which the row returns. A grid with an
 *     extent of 0 is not launched, so that extents of 0 need no case of their own. Kernels that
 *     have commas of their own stand in parentheses: (copy<T, 4>).
 *   - Grids and blocks follow from shapes alone, never from the device, so that bits do not depend
 *     on it. Blocks are whole warps. Elements of a grid: see each.h; sums: sums.h.
 *   - No atomics on reals: sums go over fixed pieces, in a fixed order. Two stages: each block
 *     writes its partial sum to scratch, one more launch adds them.
 *   - Arithmetic is in mr_cuda_sum<T>::type (real.h), the `wide` of kernels.h: T itself for float
 *     and double, float for bf16; what kernels.h calls wide is stored in it too.
 *   - Shared memory: MR_CUDA_SHARED(T, name, [rows][cols]) at the top of a kernel or of a helper,
 *     or MR_CUDA_SHARED_DYNAMIC(T, name) with the launch's bytes. More than 48 KiB of it need
 *     cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes) before.
 *     A helper that is called twice writes over its memory: it ends in a barrier.
 *   - All threads of a block come to each __syncthreads, on the same line; all 32 lanes to each
 *     shuffle, vote and wmma call, with the full mask. So no thread returns early before one.
 *   - MR_CUDA_UNROLL before a loop with constant bounds unrolls it; MR_CUDA_ROLLED keeps one as it
 *     is, where copies of its body would spill registers.
 *   - No barrier that is not needed: spec/cuda removes each in turn, and a case must show it.
 *   - Matrix units through nvcuda::wmma only; no inline PTX.
 *
 * Errors: 0, a cudaError_t, or one of mr_cuda_blas_error and mr_cuda_errno (errors.h), which also
 * has the text for each. */
#ifndef MR_CUDA_CUDA_H
#define MR_CUDA_CUDA_H

#ifdef MR_CUDA_HOST

#include <cuda_host.h> /* not of the house: where the build looks decides which it is */

#ifdef __cplusplus
#define MR_CUDA_UNROLL
#define MR_CUDA_ROLLED
#define MR_CUDA_SHARED(type, name, extents) MR_HOST_SHARED(type, name, extents)
#define MR_CUDA_SHARED_DYNAMIC(type, name) MR_HOST_SHARED_DYNAMIC(type, name)
#define MR_CUDA_START(kernel, grid, block, shared_bytes, stream, ...) \
  MR_HOST_LAUNCH(kernel, grid, block, shared_bytes, stream, __VA_ARGS__)
#endif

#else

#include <cublasLt.h>
#include <cublas_v2.h>
#include <cuda_runtime_api.h>

#ifdef __CUDACC__
#include <cuda_bf16.h>
#include <cuda_runtime.h>
#include <mma.h>

#define MR_CUDA_UNROLL _Pragma("unroll")
#define MR_CUDA_ROLLED _Pragma("unroll 1")
#define MR_CUDA_SHARED(type, name, extents) __shared__ type name extents
#define MR_CUDA_SHARED_DYNAMIC(type, name)                        \
  extern __shared__ __align__(128) unsigned char mr_cuda_bytes[]; \
  type *name = reinterpret_cast<type *>(mr_cuda_bytes)
#define MR_CUDA_START(kernel, grid, block, shared_bytes, stream, ...) \
  kernel<<<grid, block, shared_bytes, stream>>>(__VA_ARGS__)
#endif

#endif

#if defined(__CUDACC__) || (defined(MR_CUDA_HOST) && defined(__cplusplus))

/* Starts a kernel; an int, 0 or a cudaError_t. */
#define MR_CUDA_LAUNCH(kernel, grid, block, shared_bytes, stream, ...)           \
  (mr_cuda_is_empty(grid)                                                        \
       ? 0                                                                       \
       : (MR_CUDA_START(kernel, grid, block, shared_bytes, stream, __VA_ARGS__), \
          (int)cudaGetLastError()))

inline bool mr_cuda_is_empty(dim3 grid) { return grid.x == 0 || grid.y == 0 || grid.z == 0; }

#endif

#endif
