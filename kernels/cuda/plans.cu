#include "kernels/cuda/plans.h"

#define TRY(call)                                         \
  do {                                                    \
    const cublasStatus_t status_ = (call);                \
    if (status_ != CUBLAS_STATUS_SUCCESS) return status_; \
  } while (0)

static void release(const mr_cuda_plan &p) {
  if (p.a != NULL) (void)cublasLtMatrixLayoutDestroy(p.a);
  if (p.b != NULL) (void)cublasLtMatrixLayoutDestroy(p.b);
  if (p.c != NULL) (void)cublasLtMatrixLayoutDestroy(p.c);
  if (p.product != NULL) (void)cublasLtMatmulDescDestroy(p.product);
}

static bool same(const mr_cuda_plan &x, const mr_cuda_plan &y) {
  return x.type == y.type && x.transpose_a == y.transpose_a && x.transpose_b == y.transpose_b &&
         x.tf32 == y.tf32 && x.m == y.m && x.n == y.n && x.k == y.k && x.alignment == y.alignment;
}

template <typename Attribute, typename V>
static cublasStatus_t describe(const mr_cuda_plan &p, Attribute attribute, V value) {
  return cublasLtMatmulDescSetAttribute(p.product, attribute, &value, sizeof value);
}

/* The product c^T = op(b)^T op(a)^T, by columns: b stands first. */
static cublasStatus_t lay_out(mr_cuda_plan *p) {
  const cublasComputeType_t compute = p->tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
  const uint64_t m = (uint64_t)p->m, n = (uint64_t)p->n, k = (uint64_t)p->k;
  TRY(cublasLtMatmulDescCreate(&p->product, compute, CUDA_R_32F));
  TRY(describe(*p, CUBLASLT_MATMUL_DESC_TRANSA,
               (int32_t)(p->transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N)));
  TRY(describe(*p, CUBLASLT_MATMUL_DESC_TRANSB,
               (int32_t)(p->transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N)));
  TRY(describe(*p, CUBLASLT_MATMUL_DESC_EPILOGUE, (uint32_t)CUBLASLT_EPILOGUE_BIAS));
  const uint64_t b_rows = p->transpose_b ? k : n, a_rows = p->transpose_a ? m : k;
  TRY(cublasLtMatrixLayoutCreate(&p->b, p->type, b_rows, p->transpose_b ? n : k, (int64_t)b_rows));
  TRY(cublasLtMatrixLayoutCreate(&p->a, p->type, a_rows, p->transpose_a ? k : m, (int64_t)a_rows));
  return cublasLtMatrixLayoutCreate(&p->c, p->type, n, m, p->n);
}

/* A fixed workspace, and partial results that are added in order. */
static cublasStatus_t prefer(cublasLtMatmulPreference_t preference, const mr_cuda_plan &p) {
  const uint64_t workspace = MR_CUDA_WORKSPACE;
  const uint32_t scheme = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE, alignment = p.alignment;
  TRY(cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                           &workspace, sizeof workspace));
  TRY(cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
                                           &scheme, sizeof scheme));
  for (cublasLtMatmulPreferenceAttributes_t which :
       {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
    TRY(cublasLtMatmulPreferenceSetAttribute(preference, which, &alignment, sizeof alignment));
  }
  return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t choose(const mr_cuda_stream *s, mr_cuda_plan *p) {
  cublasLtMatmulPreference_t preference;
  cublasLtMatmulHeuristicResult_t best;
  int found = 0;
  TRY(cublasLtMatmulPreferenceCreate(&preference));
  cublasStatus_t status = prefer(preference, *p);
  if (status == CUBLAS_STATUS_SUCCESS) {
    status = cublasLtMatmulAlgoGetHeuristic(s->blas_lt, p->product, p->b, p->a, p->c, p->c,
                                            preference, 1, &best, &found);
  }
  (void)cublasLtMatmulPreferenceDestroy(preference);
  if (status == CUBLAS_STATUS_NOT_SUPPORTED) return CUBLAS_STATUS_SUCCESS;
  p->offered = status == CUBLAS_STATUS_SUCCESS && found > 0;
  if (p->offered) p->algorithm = best.algo;
  return status;
}

mr_cuda_plans::~mr_cuda_plans() {
  for (const mr_cuda_plan &p : plans) release(p);
}

const mr_cuda_plan *mr_cuda_plans::find(const mr_cuda_stream *s, const mr_cuda_plan &wanted,
                                        cublasStatus_t *status) {
  for (const mr_cuda_plan &p : plans) {
    if (same(p, wanted)) return &p;
  }
  mr_cuda_plan made = wanted;
  made.product = NULL;
  made.a = made.b = made.c = NULL;
  made.offered = 0;
  *status = lay_out(&made);
  if (*status == CUBLAS_STATUS_SUCCESS) *status = choose(s, &made);
  if (*status != CUBLAS_STATUS_SUCCESS) {
    release(made);
    return NULL;
  }
  plans.push_back(made);
  return &plans.back();
}
