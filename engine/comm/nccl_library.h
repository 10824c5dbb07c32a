/* What libmarea_nccl.so offers: NCCL's calls as far as the comm floor needs them. The library
 * knows nothing of the program that opens it; this header is all that they share, and
 * MR_NCCL_VERSION grows with every change of it.
 *
 * A channel is a communicator with a stream of its own. Its calls are made one after the other:
 * start, then state until it is no longer MR_NCCL_BUSY, then finish. No function waits.
 *
 * Every function of type int returns 0, MR_NCCL_BUSY, an error number of CUDA's, or one of NCCL's
 * behind MR_NCCL_ERRORS. All calls come from one thread. */
#ifndef MR_COMM_NCCL_LIBRARY_H
#define MR_COMM_NCCL_LIBRARY_H

#include <stdint.h>

#include "base/dtype.h"
#include "kernels/kernels.h"

enum { MR_NCCL_VERSION = 1, MR_NCCL_ID_BYTES = 128 };
enum { MR_NCCL_ERRORS = 10000, MR_NCCL_BUSY = 10007 /* ncclInProgress */ };

typedef struct mr_nccl_channel mr_nccl_channel;
typedef struct mr_nccl_mark mr_nccl_mark; /* a place in the order of a stream's work */

typedef enum mr_nccl_kind {
  MR_NCCL_ALL_REDUCE, /* in place */
  MR_NCCL_BROADCAST,  /* in place */
  MR_NCCL_ALL_GATHER,
  MR_NCCL_REDUCE_SCATTER,
  MR_NCCL_ALL_TO_ALL,
  MR_NCCL_SEND,
  MR_NCCL_RECEIVE
} mr_nccl_kind;

typedef enum mr_nccl_reduction {
  MR_NCCL_SUM,
  MR_NCCL_MEAN, /* the sum times 1/size */
  MR_NCCL_MAX,
  MR_NCCL_MIN
} mr_nccl_reduction;

/* `count` elements from every member; memory is the device's. */
typedef struct mr_nccl_call {
  mr_nccl_kind kind;
  mr_dtype dtype;
  mr_nccl_reduction reduction;
  int peer; /* the root of a broadcast, the other end of a message: ranks of the channel */
  int64_t count;
  const void *data;
  void *result;
  void *scratch; /* size x count elements for a reduce_scatter that mr_nccl_needs_scratch */
} mr_nccl_call;

/* 1 when a call compares reals.
 *
 * NCCL's greatest and least of reals may drop a NaN and leave the sign of zero to the order of
 * ranks, so reals are compared as integers in the same order, NaN beyond all others: exact, in any
 * order of ranks. A reduce_scatter must leave its data and translates into scratch memory. */
static inline int mr_nccl_has_keys(const mr_nccl_call *call) {
  int reduces = call->kind == MR_NCCL_ALL_REDUCE || call->kind == MR_NCCL_REDUCE_SCATTER;
  int extreme = call->reduction == MR_NCCL_MAX || call->reduction == MR_NCCL_MIN;
  return reduces && extreme && (call->dtype == MR_F32 || call->dtype == MR_F64);
}

static inline int mr_nccl_needs_scratch(const mr_nccl_call *call) {
  return call->kind == MR_NCCL_REDUCE_SCATTER && mr_nccl_has_keys(call);
}

typedef struct mr_nccl_library {
  int version;                          /* MR_NCCL_VERSION when it was built */
  const char *name;                     /* "NCCL 2.28.9", of the library that was loaded */
  const char *(*error_text)(int error); /* of the last failure, with NCCL's own words; static */

  int (*new_id)(void *id); /* MR_NCCL_ID_BYTES, for all members of one channel */
  /* Begins to make a channel on device `ordinal`; it may be used when its state is 0. Where it
   * fails, *channel is NULL. Every member calls it. */
  int (*open)(int ordinal, const void *id, int rank, int size, mr_nccl_channel **channel);
  int (*state)(mr_nccl_channel *channel);
  int (*end)(mr_nccl_channel *channel);    /* begins to end: behind all calls, on all members */
  void (*close)(mr_nccl_channel *channel); /* once the state behind `end` is 0 */
  void (*abort)(mr_nccl_channel *channel); /* ends what runs on the device, unfinished */

  /* A mark behind everything that was put into the stream of `launch` so far. */
  int (*mark)(const mr_launch *launch, mr_nccl_mark **mark);
  int (*passed)(mr_nccl_mark *mark); /* 0, or MR_NCCL_BUSY */
  void (*release)(mr_nccl_mark *mark);
  /* What is put into the stream of `launch` from now on runs behind the mark. */
  int (*follow)(const mr_launch *launch, mr_nccl_mark *mark);

  /* Puts a call into the channel's stream, behind `ready`. */
  int (*start)(mr_nccl_channel *channel, const mr_nccl_call *call, mr_nccl_mark *ready);
  /* Puts in what follows its data, and a mark behind all of it. */
  int (*finish)(mr_nccl_channel *channel, const mr_nccl_call *call, mr_nccl_mark **done);
} mr_nccl_library;

/* The one symbol that the library exports; static, never NULL. */
#define MR_NCCL_ENTRY "mr_nccl_open_library"
typedef const mr_nccl_library *(*mr_nccl_entry)(void);

#endif
