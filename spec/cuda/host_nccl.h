/* NCCL on the host: the calls that engine/comm uses of nccl.h, between processes of one host that
 * compute on devices of cuda_host.h. Data go through files without a name.
 *
 * It is meaner than NCCL: every call is under way (ncclInProgress) until its stream has come to
 * it, and stays so as long as the call before has not ended on all ranks; data that change under
 * a call are an error, and so are ranks whose calls differ, or that share a device.
 *
 * MAREA_NCCL_FAULT=RANK:KIND:N makes rank RANK of a communicator fail: `init` while it connects;
 * at its N-th call, from 1, `remote` with ncclRemoteError, `stall` without ever coming to it. */
#ifndef MR_SPEC_HOST_NCCL_H
#define MR_SPEC_HOST_NCCL_H

#include "host_runtime.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(hidden)

#define NCCL_VERSION_CODE 22809
#define NCCL_UNIQUE_ID_BYTES 128

typedef struct ncclComm *ncclComm_t;
typedef struct {
  char internal[NCCL_UNIQUE_ID_BYTES];
} ncclUniqueId;

/* Numbers as NVIDIA's. */
typedef enum {
  ncclSuccess = 0,
  ncclUnhandledCudaError = 1,
  ncclSystemError = 2,
  ncclInternalError = 3,
  ncclInvalidArgument = 4,
  ncclInvalidUsage = 5,
  ncclRemoteError = 6,
  ncclInProgress = 7
} ncclResult_t;

typedef struct {
  int blocking;
} ncclConfig_t;
#define NCCL_CONFIG_INITIALIZER \
  { 1 }

typedef enum { ncclSum = 0, ncclProd = 1, ncclMax = 2, ncclMin = 3 } ncclRedOp_t;
typedef enum {
  ncclInt32 = 2,
  ncclInt64 = 4,
  ncclFloat32 = 7,
  ncclFloat64 = 8,
  ncclBfloat16 = 9 /* not to be reduced */
} ncclDataType_t;

ncclResult_t ncclGetVersion(int *version);
const char *ncclGetErrorString(ncclResult_t result);
const char *ncclGetLastError(ncclComm_t comm);

ncclResult_t ncclGetUniqueId(ncclUniqueId *id);
/* config->blocking must be 0. */
ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int ranks, ncclUniqueId id, int rank,
                                    ncclConfig_t *config);
ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *error);
ncclResult_t ncclCommFinalize(ncclComm_t comm);
ncclResult_t ncclCommDestroy(ncclComm_t comm);
ncclResult_t ncclCommAbort(ncclComm_t comm);

/* One call, or sends and receives of one communicator, between start and end. */
ncclResult_t ncclGroupStart(void);
ncclResult_t ncclGroupEnd(void);
ncclResult_t ncclAllReduce(const void *data, void *result, size_t count, ncclDataType_t type,
                           ncclRedOp_t operation, ncclComm_t comm, cudaStream_t stream);
ncclResult_t ncclBroadcast(const void *data, void *result, size_t count, ncclDataType_t type,
                           int root, ncclComm_t comm, cudaStream_t stream);
ncclResult_t ncclAllGather(const void *data, void *result, size_t count, ncclDataType_t type,
                           ncclComm_t comm, cudaStream_t stream);
/* count: of the result */
ncclResult_t ncclReduceScatter(const void *data, void *result, size_t count, ncclDataType_t type,
                               ncclRedOp_t operation, ncclComm_t comm, cudaStream_t stream);
ncclResult_t ncclSend(const void *data, size_t count, ncclDataType_t type, int peer,
                      ncclComm_t comm, cudaStream_t stream);
ncclResult_t ncclRecv(void *result, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
