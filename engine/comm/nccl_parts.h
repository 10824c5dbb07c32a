/* What the files of NCCL's transport share: channels and moves. */
#ifndef MR_COMM_NCCL_PARTS_H
#define MR_COMM_NCCL_PARTS_H

#include "comm/nccl.h"
#include "comm/nccl_library.h"

typedef enum mr_channel_step {
  MR_CHANNEL_NONE,
  MR_CHANNEL_ID,   /* its id is on the way to the other end of the messages */
  MR_CHANNEL_OPEN, /* NCCL connects the members */
  MR_CHANNEL_READY
} mr_channel_step;

typedef struct mr_channel {
  mr_channel_step step;
  mr_nccl_channel *nccl; /* from MR_CHANNEL_OPEN on */
  char id[MR_NCCL_ID_BYTES];
  void *request;         /* the transport's, at MR_CHANNEL_ID */
  int64_t tickets, turn; /* moves start in the order of their tickets */
  int under_way;
} mr_channel;

/* Of one group; they live until the world closes, since ending one is collective. */
typedef struct mr_channels {
  int size;
  mr_channel collectives;
  mr_channel *sends, *receives; /* [size] */
  struct mr_channels *next;
} mr_channels;

typedef enum mr_move_step {
  MR_MOVE_WAIT,  /* for the channel, or for the moves before it */
  MR_MOVE_START, /* NCCL puts it into the channel's stream */
  MR_MOVE_RUN
} mr_move_step;

struct mr_move {
  mr_channel *channel;
  mr_nccl_call call;
  mr_nccl_mark *ready, *done;
  void *scratch; /* the device's */
  mr_move_step step;
  int64_t ticket; /* -1 before the start */
  double since;   /* the start, in seconds of mr_clock_seconds */
  char text[MR_RECORD_TEXT];
  mr_move *next; /* of those whose handles have ended */
};

struct mr_nccl {
  const mr_nccl_library *library;
  mr_device *device;
  int ordinal;
  int alone;      /* use it for groups of one member too */
  double seconds; /* that a move may take from its start to its end */
  mr_channels *groups;
  mr_move *moves; /* whose handles have ended, not seen to have ended themselves */
  double next_watch;
};

/* Fails for an error number of the library's in `what`. */
mr_status mr_nccl_fail(const mr_nccl *nccl, int error, const char *what);

/* Moves a channel of messages on: `sending` to, or receiving from, member `peer`. */
mr_status mr_channel_connect(mr_group *group, mr_channel *channel, int peer, int sending);

/* Gives up what a move holds. */
void mr_move_release(mr_nccl *nccl, mr_move *move);

#endif
