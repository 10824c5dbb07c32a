/* Products by OpenBLAS, in float for bf16. */
#include "host_blas.h"

#include <cblas.h>
#include <string.h>

#include <vector>

#include "host_internal.h"

struct cublasContext {
  cudaStream_t stream;
  cublasMath_t mode;
};

struct cublasLtMatmulDescOpaque {
  cublasComputeType_t compute;
  int32_t transpose_a, transpose_b, epilogue;
  const void *bias;
};

struct cublasLtMatrixLayoutOpaque {
  cudaDataType type;
  uint64_t rows, cols;
  int64_t stride;
};

struct cublasLtMatmulPreferenceOpaque {
  uint64_t workspace_bytes;
};

namespace {

/* A matrix as it lies: columns `stride` apart. */
struct matrix {
  const void *at;
  cudaDataType type;
  int rows, cols, stride;
};

struct product {
  bool transpose_a, transpose_b;
  int m, n, k;
  double alpha, beta;
  matrix a, b, c;
  cublasComputeType_t compute;
  const void *bias; /* of the rows, in c's type; or NULL */
};

size_t size_of(cudaDataType type) { return type == CUDA_R_64F ? 8 : type == CUDA_R_32F ? 4 : 2; }

/* To the 10 bits of mantissa that TF32 keeps, to nearest. */
float to_tf32(float x) { return __uint_as_float((__float_as_uint(x) + 0x1000U) & ~0x1fffU); }

std::vector<float> floats(const matrix &m, bool tf32) {
  std::vector<float> all((size_t)m.rows * (size_t)m.cols);
  for (int col = 0; col < m.cols; col++) {
    for (int row = 0; row < m.rows; row++) {
      const size_t from = (size_t)row + (size_t)col * (size_t)m.stride;
      const float x = m.type == CUDA_R_16BF ? (float)((const __nv_bfloat16 *)m.at)[from]
                                            : ((const float *)m.at)[from];
      all[(size_t)row + (size_t)col * (size_t)m.rows] = tf32 ? to_tf32(x) : x;
    }
  }
  return all;
}

CBLAS_TRANSPOSE turned(bool transposed) { return transposed ? CblasTrans : CblasNoTrans; }

template <typename T>
void add_bias(const product &p, T *c, int stride) {
  for (int col = 0; col < p.n && p.bias != nullptr; col++) {
    for (int row = 0; row < p.m; row++) {
      T *at = c + row + (size_t)col * (size_t)stride;
      *at = (T)((float)*at + (float)((const T *)p.bias)[row]);
    }
  }
}

/* By way of float copies of all three. */
void multiply_copies(const product &p) {
  const bool tf32 = p.compute == CUBLAS_COMPUTE_32F_FAST_TF32;
  const std::vector<float> a = floats(p.a, tf32), b = floats(p.b, tf32);
  std::vector<float> c((size_t)p.m * (size_t)p.n, 0.0F);
  if (p.beta != 0) c = floats(p.c, false);
  cblas_sgemm(CblasColMajor, turned(p.transpose_a), turned(p.transpose_b), p.m, p.n, p.k,
              (float)p.alpha, a.data(), p.a.rows, b.data(), p.b.rows, (float)p.beta, c.data(), p.m);
  for (int col = 0; col < p.n; col++) {
    for (int row = 0; row < p.m; row++) {
      const size_t to = (size_t)row + (size_t)col * (size_t)p.c.stride;
      float x = c[(size_t)row + (size_t)col * (size_t)p.m];
      if (p.c.type == CUDA_R_16BF) {
        if (p.bias != nullptr) x += (float)((const __nv_bfloat16 *)p.bias)[row];
        ((__nv_bfloat16 *)p.c.at)[to] = __nv_bfloat16(x);
      } else {
        if (p.bias != nullptr) x += ((const float *)p.bias)[row];
        ((float *)p.c.at)[to] = x;
      }
    }
  }
}

void multiply(const product &p) {
  if (p.a.type == CUDA_R_64F) {
    cblas_dgemm(CblasColMajor, turned(p.transpose_a), turned(p.transpose_b), p.m, p.n, p.k, p.alpha,
                (const double *)p.a.at, p.a.stride, (const double *)p.b.at, p.b.stride, p.beta,
                (double *)p.c.at, p.c.stride);
    return;
  }
  if (p.compute == CUBLAS_COMPUTE_32F_FAST_TF32 || p.a.type == CUDA_R_16BF) {
    multiply_copies(p);
    return;
  }
  cblas_sgemm(CblasColMajor, turned(p.transpose_a), turned(p.transpose_b), p.m, p.n, p.k,
              (float)p.alpha, (const float *)p.a.at, p.a.stride, (const float *)p.b.at, p.b.stride,
              (float)p.beta, (float *)p.c.at, p.c.stride);
  add_bias(p, (float *)p.c.at, p.c.stride);
}

/* Does all of it lie in memory of the device? Batches are `apart` elements apart. */
bool reachable(const matrix &m, int64_t apart, int count) {
  if (m.rows == 0 || m.cols == 0) return true;
  const int64_t elements = apart * (count - 1) + (int64_t)(m.cols - 1) * m.stride + m.rows;
  return mr_host::on_device(m.at, (size_t)elements * size_of(m.type));
}

bool types_fit(const product &p) {
  if (p.a.type != p.b.type) return false;
  if (p.compute == CUBLAS_COMPUTE_64F) return p.a.type == CUDA_R_64F && p.c.type == CUDA_R_64F;
  if (p.a.type == CUDA_R_32F) return p.c.type == CUDA_R_32F;
  return p.a.type == CUDA_R_16BF && (p.c.type == CUDA_R_16BF || p.c.type == CUDA_R_32F) &&
         p.compute != CUBLAS_COMPUTE_32F_FAST_TF32;
}

cublasStatus_t run(cudaStream_t stream, const product &p, int64_t a_apart, int64_t b_apart,
                   int64_t c_apart, int count) {
  if (p.m < 0 || p.n < 0 || p.k < 0 || count < 0 || p.a.stride < p.a.rows || p.a.stride < 1 ||
      p.b.stride < p.b.rows || p.b.stride < 1 || p.c.stride < p.m || p.c.stride < 1) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  if (!types_fit(p)) return CUBLAS_STATUS_NOT_SUPPORTED;
  if (p.m == 0 || p.n == 0 || count == 0) return CUBLAS_STATUS_SUCCESS;
  if (!reachable(p.a, a_apart, count) || !reachable(p.b, b_apart, count) ||
      !reachable(p.c, c_apart, count)) {
    mr_host::refuse("a product of matrices that do not lie in memory of the device");
    return CUBLAS_STATUS_EXECUTION_FAILED;
  }
  const cudaError_t error = mr_host::append(stream, [=] {
    for (int i = 0; i < count; i++) {
      product one = p;
      one.a.at = (const char *)p.a.at + i * a_apart * (int64_t)size_of(p.a.type);
      one.b.at = (const char *)p.b.at + i * b_apart * (int64_t)size_of(p.b.type);
      one.c.at = (const char *)p.c.at + i * c_apart * (int64_t)size_of(p.c.type);
      multiply(one);
    }
  });
  return error == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}

double scalar(const void *at, cublasComputeType_t compute) {
  return compute == CUBLAS_COMPUTE_64F ? *(const double *)at : (double)*(const float *)at;
}

}  // namespace

cublasStatus_t cublasCreate(cublasHandle_t *handle) {
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess) return CUBLAS_STATUS_NOT_INITIALIZED;
  *handle = new cublasContext{};
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasDestroy(cublasHandle_t handle) {
  delete handle;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGetVersion(cublasHandle_t, int *version) {
  *version = CUDART_VERSION;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetStream(cublasHandle_t handle, cudaStream_t stream) {
  handle->stream = stream;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetWorkspace(cublasHandle_t, void *workspace, size_t bytes) {
  return bytes == 0 || mr_host::on_device(workspace, bytes) ? CUBLAS_STATUS_SUCCESS
                                                            : CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode) {
  handle->mode = mode;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetAtomicsMode(cublasHandle_t, cublasAtomicsMode_t mode) {
  return mode == CUBLAS_ATOMICS_NOT_ALLOWED ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
}

cublasStatus_t cublasSetPointerMode(cublasHandle_t, cublasPointerMode_t mode) {
  return mode == CUBLAS_POINTER_MODE_HOST ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
}

const char *cublasGetStatusString(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_SUCCESS:
      return "CUBLAS_STATUS_SUCCESS";
    case CUBLAS_STATUS_NOT_INITIALIZED:
      return "CUBLAS_STATUS_NOT_INITIALIZED";
    case CUBLAS_STATUS_ALLOC_FAILED:
      return "CUBLAS_STATUS_ALLOC_FAILED";
    case CUBLAS_STATUS_INVALID_VALUE:
      return "CUBLAS_STATUS_INVALID_VALUE";
    case CUBLAS_STATUS_EXECUTION_FAILED:
      return "CUBLAS_STATUS_EXECUTION_FAILED";
    case CUBLAS_STATUS_NOT_SUPPORTED:
      return "CUBLAS_STATUS_NOT_SUPPORTED";
  }
  return "an unknown status of cuBLAS";
}

cublasStatus_t cublasGemmStridedBatchedEx(cublasHandle_t handle, cublasOperation_t transpose_a,
                                          cublasOperation_t transpose_b, int m, int n, int k,
                                          const void *alpha, const void *a, cudaDataType a_type,
                                          int lda, long long a_stride, const void *b,
                                          cudaDataType b_type, int ldb, long long b_stride,
                                          const void *beta, void *c, cudaDataType c_type, int ldc,
                                          long long c_stride, int count,
                                          cublasComputeType_t compute, cublasGemmAlgo_t) {
  const bool turn_a = transpose_a == CUBLAS_OP_T, turn_b = transpose_b == CUBLAS_OP_T;
  if (compute == CUBLAS_COMPUTE_32F && a_type == CUDA_R_32F &&
      handle->mode == CUBLAS_TF32_TENSOR_OP_MATH) {
    compute = CUBLAS_COMPUTE_32F_FAST_TF32;
  }
  const product p = {turn_a,
                     turn_b,
                     m,
                     n,
                     k,
                     scalar(alpha, compute),
                     scalar(beta, compute),
                     {a, a_type, turn_a ? k : m, turn_a ? m : k, lda},
                     {b, b_type, turn_b ? n : k, turn_b ? k : n, ldb},
                     {c, c_type, m, n, ldc},
                     compute,
                     nullptr};
  return run(handle->stream, p, a_stride, b_stride, c_stride, count);
}

cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t transpose_a,
                            cublasOperation_t transpose_b, int m, int n, int k, const void *alpha,
                            const void *a, cudaDataType a_type, int lda, const void *b,
                            cudaDataType b_type, int ldb, const void *beta, void *c,
                            cudaDataType c_type, int ldc, cublasComputeType_t compute,
                            cublasGemmAlgo_t algorithm) {
  return cublasGemmStridedBatchedEx(handle, transpose_a, transpose_b, m, n, k, alpha, a, a_type,
                                    lda, 0, b, b_type, ldb, 0, beta, c, c_type, ldc, 0, 1, compute,
                                    algorithm);
}

/* --- cuBLASLt --- */

cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle) { return cublasCreate(handle); }

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) { return cublasDestroy(handle); }

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *product, cublasComputeType_t compute,
                                        cudaDataType) {
  *product = new cublasLtMatmulDescOpaque{compute, 0, 0, CUBLASLT_EPILOGUE_DEFAULT, nullptr};
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t product) {
  delete product;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t product,
                                              cublasLtMatmulDescAttributes_t attribute,
                                              const void *value, size_t bytes) {
  void *to = attribute == CUBLASLT_MATMUL_DESC_TRANSA     ? (void *)&product->transpose_a
             : attribute == CUBLASLT_MATMUL_DESC_TRANSB   ? (void *)&product->transpose_b
             : attribute == CUBLASLT_MATMUL_DESC_EPILOGUE ? (void *)&product->epilogue
                                                          : (void *)&product->bias;
  if (bytes != (attribute == CUBLASLT_MATMUL_DESC_BIAS_POINTER ? sizeof(void *) : 4)) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  memcpy(to, value, bytes);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *layout, cudaDataType type,
                                          uint64_t rows, uint64_t cols, int64_t stride) {
  *layout = new cublasLtMatrixLayoutOpaque{type, rows, cols, stride};
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  delete layout;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *preference) {
  *preference = new cublasLtMatmulPreferenceOpaque{0};
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  delete preference;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute,
                                                    const void *value, size_t bytes) {
  if (attribute != CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES) return CUBLAS_STATUS_SUCCESS;
  if (bytes != sizeof preference->workspace_bytes) return CUBLAS_STATUS_INVALID_VALUE;
  memcpy(&preference->workspace_bytes, value, bytes);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t product,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t,
                                              cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                              cublasLtMatmulPreference_t, int wanted,
                                              cublasLtMatmulHeuristicResult_t results[],
                                              int *found) {
  *found = 0;
  if (wanted < 1) return CUBLAS_STATUS_INVALID_VALUE;
  if (a->type == CUDA_R_64F && product->epilogue != CUBLASLT_EPILOGUE_DEFAULT) {
    return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  memset(results, 0, sizeof *results);
  *found = 1;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t of, const void *alpha,
                              const void *a, cublasLtMatrixLayout_t a_layout, const void *b,
                              cublasLtMatrixLayout_t b_layout, const void *beta, const void *c,
                              cublasLtMatrixLayout_t c_layout, void *d,
                              cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t *,
                              void *workspace, size_t workspace_bytes, cudaStream_t stream) {
  const bool turn_a = of->transpose_a != 0, turn_b = of->transpose_b != 0;
  const uint64_t k = turn_a ? a_layout->rows : a_layout->cols;
  if (c != d || c_layout->type != d_layout->type ||
      k != (turn_b ? b_layout->cols : b_layout->rows)) {
    return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  if (workspace_bytes > 0 && !mr_host::on_device(workspace, workspace_bytes)) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  const product p = {
      turn_a,
      turn_b,
      (int)d_layout->rows,
      (int)d_layout->cols,
      (int)k,
      scalar(alpha, of->compute),
      scalar(beta, of->compute),
      {a, a_layout->type, (int)a_layout->rows, (int)a_layout->cols, (int)a_layout->stride},
      {b, b_layout->type, (int)b_layout->rows, (int)b_layout->cols, (int)b_layout->stride},
      {d, d_layout->type, (int)d_layout->rows, (int)d_layout->cols, (int)d_layout->stride},
      of->compute,
      of->epilogue == CUBLASLT_EPILOGUE_BIAS ? of->bias : nullptr};
  if (p.bias != nullptr && !mr_host::on_device(p.bias, (size_t)p.m * size_of(d_layout->type))) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  return run(stream, p, 0, 0, 0, 1);
}
