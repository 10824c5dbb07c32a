/* libmarea_nccl.so: channels of NCCL and the calls on them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "comm/nccl_library.h"
#include "comm/nccl_values.h"
#include "kernels/cuda/cuda.h"
#include "kernels/cuda/stream.h"
#ifdef MR_CUDA_HOST
#include <host_nccl.h>
#else
#include <nccl.h>
#endif

#if NCCL_VERSION_CODE < 21800
#error "NCCL 2.18 or later is needed: communicators that do not block"
#endif

static_assert(MR_NCCL_BUSY == MR_NCCL_ERRORS + (int)ncclInProgress, "as NCCL has it");
static_assert(MR_NCCL_ID_BYTES == NCCL_UNIQUE_ID_BYTES, "as NCCL has it");

struct mr_nccl_channel {
  ncclComm_t comm;
  cudaStream_t stream;
  int rank, size;
};

struct mr_nccl_mark {
  cudaEvent_t event;
};

namespace {

char text[1024];

int taken(cudaError_t error) {
  if (error == cudaErrorNotReady) return MR_NCCL_BUSY;
  if (error == cudaSuccess) return 0;
  (void)cudaGetLastError();
  (void)snprintf(text, sizeof text, "%s", cudaGetErrorString(error));
  return (int)error;
}

int taken(ncclResult_t result, ncclComm_t comm) {
  if (result == ncclSuccess) return 0;
  if (result == ncclInProgress) return MR_NCCL_BUSY;
  const char *more = ncclGetLastError(comm);
  const bool told = more != NULL && *more != 0;
  (void)snprintf(text, sizeof text, "%s%s%s", ncclGetErrorString(result), told ? ": " : "",
                 told ? more : "");
  return MR_NCCL_ERRORS + (int)result;
}

/* Goes on when a call is good, or under way. */
#define TRY(expression)                                 \
  do {                                                  \
    const int try_ = (expression);                      \
    if (try_ != 0 && try_ != MR_NCCL_BUSY) return try_; \
  } while (0)

const char *error_text(int) { return text; }

/* --- life --- */

int new_id(void *id) {
  ncclUniqueId made;
  TRY(taken(ncclGetUniqueId(&made), NULL));
  memcpy(id, &made, sizeof made);
  return 0;
}

/* With a higher priority than kernels: what the other ranks wait for goes first. */
int open_stream(cudaStream_t *stream) {
  int least = 0, greatest = 0;
  TRY(taken(cudaDeviceGetStreamPriorityRange(&least, &greatest)));
  return taken(cudaStreamCreateWithPriority(stream, cudaStreamNonBlocking, greatest));
}

int join(mr_nccl_channel *c, const void *id) {
  ncclUniqueId unique;
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  memcpy(&unique, id, sizeof unique);
  config.blocking = 0;
  TRY(open_stream(&c->stream));
  return taken(ncclCommInitRankConfig(&c->comm, c->size, unique, c->rank, &config), NULL);
}

void close_stream(mr_nccl_channel *c) {
  if (c->stream != NULL) (void)cudaStreamDestroy(c->stream);
  free(c);
}

void close_channel(mr_nccl_channel *c) {
  (void)ncclCommDestroy(c->comm);
  close_stream(c);
}

/* The stream is left: what it still holds may never end. */
void abort_channel(mr_nccl_channel *c) {
  if (c->comm != NULL) (void)ncclCommAbort(c->comm);
  free(c);
}

int open_channel(int ordinal, const void *id, int rank, int size, mr_nccl_channel **channel) {
  *channel = NULL;
  TRY(taken(cudaSetDevice(ordinal)));
  mr_nccl_channel *c = static_cast<mr_nccl_channel *>(calloc(1, sizeof(mr_nccl_channel)));
  if (c == NULL) return taken(cudaErrorMemoryAllocation);
  c->rank = rank;
  c->size = size;
  const int error = join(c, id);
  if (error == 0 || error == MR_NCCL_BUSY) {
    *channel = c;
    return error;
  }
  if (c->comm != NULL) (void)ncclCommAbort(c->comm);
  close_stream(c);
  return error;
}

int state(mr_nccl_channel *c) {
  ncclResult_t result = ncclSuccess;
  TRY(taken(ncclCommGetAsyncError(c->comm, &result), c->comm));
  return taken(result, c->comm);
}

int end_channel(mr_nccl_channel *c) { return taken(ncclCommFinalize(c->comm), c->comm); }

/* --- marks --- */

void release(mr_nccl_mark *mark) {
  (void)cudaEventDestroy(mark->event);
  free(mark);
}

int mark_stream(cudaStream_t stream, mr_nccl_mark **mark) {
  *mark = NULL;
  mr_nccl_mark *made = static_cast<mr_nccl_mark *>(calloc(1, sizeof(mr_nccl_mark)));
  if (made == NULL) return taken(cudaErrorMemoryAllocation);
  int error = taken(cudaEventCreateWithFlags(&made->event, cudaEventDisableTiming));
  if (error != 0) {
    free(made);
    return error;
  }
  error = taken(cudaEventRecord(made->event, stream));
  if (error == 0)
    *mark = made;
  else
    release(made);
  return error;
}

int mark(const mr_launch *launch, mr_nccl_mark **made) {
  return mark_stream(mr_cuda_of(launch)->stream, made);
}

int passed(mr_nccl_mark *mark) { return taken(cudaEventQuery(mark->event)); }

int follow(const mr_launch *launch, mr_nccl_mark *mark) {
  return taken(cudaStreamWaitEvent(mr_cuda_of(launch)->stream, mark->event, 0));
}

/* --- calls --- */

ncclDataType_t type_of(const mr_nccl_call *call) {
  switch (call->dtype) {
    case MR_F32:
      return mr_nccl_has_keys(call) ? ncclInt32 : ncclFloat32;
    case MR_F64:
      return mr_nccl_has_keys(call) ? ncclInt64 : ncclFloat64;
    case MR_BF16: /* moved, never summed */
      return ncclBfloat16;
    case MR_I32:
      return ncclInt32;
    default:
      return ncclInt64;
  }
}

size_t bytes_of(mr_dtype dtype) {
  if (dtype == MR_BF16) return 2;
  return dtype == MR_F32 || dtype == MR_I32 ? 4 : 8;
}

ncclRedOp_t operation_of(const mr_nccl_call *call) {
  if (call->reduction == MR_NCCL_MAX) return ncclMax;
  return call->reduction == MR_NCCL_MIN ? ncclMin : ncclSum;
}

/* The data that are reduced: keys where there are. */
int prepare(const mr_nccl_channel *c, const mr_nccl_call *call, const void **data) {
  *data = call->data;
  if (!mr_nccl_has_keys(call)) return 0;
  const bool scatters = call->kind == MR_NCCL_REDUCE_SCATTER;
  const int64_t n = scatters ? call->count * c->size : call->count;
  void *keys = scatters ? call->scratch : call->result;
  *data = keys;
  return mr_nccl_to_keys(c->stream, call->dtype, call->reduction == MR_NCCL_MAX, n, call->data,
                         keys);
}

int exchange_blocks(const mr_nccl_channel *c, const mr_nccl_call *call) {
  const ncclDataType_t type = type_of(call);
  const size_t n = (size_t)call->count, bytes = n * bytes_of(call->dtype);
  for (int r = 0; r < c->size; r++) {
    const char *from = static_cast<const char *>(call->data) + (size_t)r * bytes;
    char *to = static_cast<char *>(call->result) + (size_t)r * bytes;
    TRY(taken(ncclSend(from, n, type, r, c->comm, c->stream), c->comm));
    TRY(taken(ncclRecv(to, n, type, r, c->comm, c->stream), c->comm));
  }
  return 0;
}

int put(const mr_nccl_channel *c, const mr_nccl_call *call, const void *data) {
  const ncclDataType_t type = type_of(call);
  const size_t n = (size_t)call->count;
  const ncclComm_t comm = c->comm;
  switch (call->kind) {
    case MR_NCCL_ALL_REDUCE:
      return taken(ncclAllReduce(data, call->result, n, type, operation_of(call), comm, c->stream),
                   comm);
    case MR_NCCL_BROADCAST:
      return taken(ncclBroadcast(data, call->result, n, type, call->peer, comm, c->stream), comm);
    case MR_NCCL_ALL_GATHER:
      return taken(ncclAllGather(data, call->result, n, type, comm, c->stream), comm);
    case MR_NCCL_REDUCE_SCATTER:
      return taken(
          ncclReduceScatter(data, call->result, n, type, operation_of(call), comm, c->stream),
          comm);
    case MR_NCCL_ALL_TO_ALL:
      return exchange_blocks(c, call);
    case MR_NCCL_SEND:
      return taken(ncclSend(data, n, type, call->peer, comm, c->stream), comm);
    default:
      return taken(ncclRecv(call->result, n, type, call->peer, comm, c->stream), comm);
  }
}

int start(mr_nccl_channel *c, const mr_nccl_call *call, mr_nccl_mark *ready) {
  const void *data = NULL;
  TRY(taken(cudaStreamWaitEvent(c->stream, ready->event, 0)));
  TRY(prepare(c, call, &data));
  TRY(taken(ncclGroupStart(), c->comm));
  const int error = put(c, call, data);
  const int ended = taken(ncclGroupEnd(), c->comm);
  return error != 0 && error != MR_NCCL_BUSY ? error : ended;
}

int finish(mr_nccl_channel *c, const mr_nccl_call *call, mr_nccl_mark **done) {
  *done = NULL;
  if (mr_nccl_has_keys(call)) {
    TRY(mr_nccl_from_keys(c->stream, call->dtype, call->count, call->result));
  } else if (call->reduction == MR_NCCL_MEAN && c->size > 1) {
    TRY(mr_nccl_divide(c->stream, call->dtype, call->count, c->size, call->result));
  }
  return mark_stream(c->stream, done);
}

/* --- the library --- */

const char *library_name() {
  static char name[64];
  int version = 0;
  (void)ncclGetVersion(&version);
  (void)snprintf(name, sizeof name, "NCCL %d.%d.%d", version / 10000, version / 100 % 100,
                 version % 100);
  return name;
}

mr_nccl_library make_library() {
  mr_nccl_library l;
  l.version = MR_NCCL_VERSION;
  l.name = library_name();
  l.error_text = error_text;
  l.new_id = new_id;
  l.open = open_channel;
  l.state = state;
  l.end = end_channel;
  l.close = close_channel;
  l.abort = abort_channel;
  l.mark = mark;
  l.passed = passed;
  l.release = release;
  l.follow = follow;
  l.start = start;
  l.finish = finish;
  return l;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) const mr_nccl_library *mr_nccl_open_library(void);

const mr_nccl_library *mr_nccl_open_library(void) {
  static const mr_nccl_library library = make_library();
  return &library;
}
