/* Inside the comm floor: the structures behind the public handles, and what a transport and a
 * board provide. A transport moves data between ranks; a board carries records.
 *
 * An operation goes through the stages of mr_stage. It belongs to a lane: the collectives of a
 * group, the sends to one peer, or the receives from one peer. Invariant: within a lane
 * operations are announced and started in the order of their sequence numbers, which are equal
 * on all members because each counts its own posts. */
#ifndef MR_COMM_TRANSPORT_H
#define MR_COMM_TRANSPORT_H

#include "comm/comm.h"
#include "comm/presence.h"
#include "comm/record.h"
#include "comm/window.h"

typedef struct mr_world mr_world;
typedef struct mr_transport mr_transport;
typedef struct mr_board mr_board;
typedef struct mr_nccl mr_nccl;
typedef struct mr_channels mr_channels;
typedef struct mr_move mr_move;

typedef struct mr_lane {
  int64_t posted, announced, started; /* sequence numbers of the next operation in each */
} mr_lane;

typedef enum mr_stage {
  MR_QUEUED,    /* the others do not know of it yet */
  MR_ANNOUNCED, /* its record is on the board */
  MR_STARTED,   /* all agreed; the transport moves data */
  MR_DONE       /* `status` holds */
} mr_stage;

/* How far this member's share of a reduction in a window is. */
typedef enum mr_share_step {
  MR_SHARE_SUM,     /* over the members of the host */
  MR_SHARE_CROSS,   /* with the other hosts' sums */
  MR_SHARE_PUBLISH, /* the sum is stored; the others may know */
  MR_SHARE_WAIT     /* for the others' shares */
} mr_share_step;

typedef struct mr_share {
  int64_t ticket; /* of the reduction, in its window */
  int64_t first, count;
  mr_share_step step;
  mr_handle *crossing; /* what the transport is given; NULL unless the step is MR_SHARE_CROSS */
} mr_share;

/* An operation whose data lie on a device without host memory: the transport is given host buffers
 * in their place. */
typedef struct mr_stop_over {
  mr_device *device; /* NULL: the data are in host memory */
  void *result;      /* the device's; NULL: nothing is written there */
  int64_t bytes;     /* of the result */
  void *sent, *got;  /* the host buffers, owned; NULL where there is none, or both are `got` */
  mr_mark *mark;     /* behind the read of the data; NULL: they are there */
  int moved;         /* the device has moved the data itself; the transport has nothing to do */
} mr_stop_over;

struct mr_handle {
  int references; /* the caller's and, until MR_DONE, the queue's */
  mr_group *group;
  mr_lane *lane;
  int64_t sequence;
  mr_record record;
  const void *data; /* what this rank hands in */
  void *result;     /* what it gets; the same buffer for operations in place */
  mr_stop_over over;
  mr_move *move; /* NCCL's, for data on a GPU, until it has ended or the device waits for it */
  int direct;    /* so far NCCL can move the data: all members' lie on GPUs */
  int agreed;    /* all members' records were compared */
  int wanted;    /* somebody waits for the end */
  mr_stage stage;
  mr_status status;
  char *message;     /* of a failure; NULL when there was no memory to keep it */
  int missing;       /* while announced: a member whose record has not come, or -1 */
  double disputed;   /* when a disagreement was first seen, or 0 */
  void *exchange;    /* the board's, while announced */
  mr_window *window; /* in which the data are reduced, or NULL: by the transport */
  mr_share share;    /* while started in a window */
  void *transfer;    /* the transport's, while started */
  mr_handle *next;   /* in the queue of the world */
};

struct mr_group {
  int references;
  mr_world *world;
  char *name;
  int rank, size;
  int local_rank, local_size;
  int *members; /* ranks of the world */
  mr_lane collectives;
  mr_lane *sends, *receives; /* [size] */
  mr_ledger ledger;
  mr_board *board;       /* NULL when the group has one member */
  void *communicators;   /* the transport's */
  mr_channels *channels; /* NCCL's, borrowed, while the world has it; NULL: the group has none */

  mr_window *windows; /* that are open, borrowed */
  int windows_opened; /* so far */
  /* Once a window was asked for: how many members of each host sum (0 before), the most members
   * that a host has, and, on several hosts, communicators among the members of this host and
   * among those of all hosts that sum the same share (NULL for a member that sums none). */
  int summing, most_local;
  mr_group *local, *across;
};

struct mr_world {
  const mr_transport *transport;
  mr_group *group;
  int groups;               /* alive; the world goes with the last one */
  mr_world **opened;        /* where comm.c holds this world, to be cleared; or NULL */
  int crowded;              /* this host has fewer cores than ranks */
  int *hosts;               /* [size]: the lowest rank on each rank's host */
  mr_presence *presence;    /* NULL when ranks are on several hosts, or there is one */
  mr_nccl *nccl;            /* between the GPUs of all ranks, or NULL */
  double parting;           /* until when operations may end after a rank has left, or 0 */
  mr_handle *first, **last; /* the queue of all operations that are not done, in post order */
  int moving;               /* operations are being moved on */
  mr_status broken;         /* not MR_OK: why no operation can succeed any more */
  char *broken_message;
};

struct mr_transport {
  const char *name;

  /* Starts moving the data of an agreed operation, and says whether that has ended. Everything
   * but MR_MEAN's division, which the caller does. Count is above 0. */
  mr_status (*start)(mr_handle *handle);
  mr_status (*test)(mr_handle *handle, int *done);

  /* The child's communicators, rank, size and members; size stays 0 for colour -1. Blocks. */
  mr_status (*split)(mr_group *parent, int color, int key, mr_group *child);

  /* For setting up: bytes of member 0 to all; the lowest flag of all. Both block. */
  mr_status (*spread)(mr_group *group, void *data, int bytes);
  mr_status (*lowest)(mr_group *group, int *flag);

  /* A blocking sum of f32 in place, for measuring; NULL: there is nothing to do. */
  mr_status (*plain_sum)(mr_group *group, float *data, int64_t count);

  /* Records over the network, for the control board: to all members, or between two ends of a
   * message; theirs[size] or theirs[1]. */
  mr_status (*exchange)(mr_handle *handle, mr_record *theirs, void **request);
  mr_status (*exchanged)(void **request, int *done);

  /* Some bytes to, or from, member `peer`, beside all messages: at most once for each ordered pair
   * of members. `exchanged` tells its end too. NULL where a group has one member. */
  mr_status (*pass)(mr_group *group, int peer, int sending, void *data, int bytes, void **request);

  mr_status (*close)(mr_world *world); /* gives the communicators back, shuts down */
  void (*stop)(int exit_code);         /* ends all processes, this one too; may be NULL */
};

/* The transport of one process. */
extern const mr_transport mr_transport_single;
/* Open MPI; mr_mpi_open starts it and fills rank, size, members and hosts of the world. */
extern const mr_transport mr_transport_mpi;
mr_status mr_mpi_open(mr_world *world);

/* A group with one reference and its lanes; size and members are the transport's to set before
 * mr_group_finish, which allocates what depends on them and opens the board. */
mr_status mr_group_new(mr_world *world, const char *name, mr_group **group);
mr_status mr_group_finish(mr_group *group);

/* Posts an operation: takes a filled-in record, checks the world, appends to the queue and tries
 * to move it on. Data and result lie on `device`, NULL for the host. *handle is the caller's. */
mr_status mr_handle_post(mr_group *group, const mr_record *record, mr_device *device,
                         const void *data, void *result, mr_handle **handle);

/* Data on devices. Begin: puts host buffers in the place of a handle's data and result, where
 * `device` has no host memory, and has the data read. Ready: 1 once they are there. End: hands the
 * result to the device. Release: gives the buffers back; also after nothing was begun. */
mr_status mr_stop_over_begin(mr_handle *handle, mr_device *device);
mr_status mr_stop_over_ready(mr_handle *handle, int *ready);
mr_status mr_stop_over_end(mr_handle *handle);
void mr_stop_over_release(mr_handle *handle);

/* Posts a record without data and waits until all members agreed on it. */
mr_status mr_group_agree(mr_group *group, mr_collective kind, int64_t count, const char *line);

/* Reductions in windows. Place: looks for the window that a new operation's data lie in, and notes
 * it in its record. Start and test: as a transport's, the mean's division included. */
void mr_window_place(mr_handle *handle);
void mr_window_start(mr_handle *handle);
mr_status mr_window_test(mr_handle *handle, int *done);
/* Seconds that this process has spent summing in windows. */
double mr_window_seconds(void);

/* Makes every pending and later operation fail with `status` and the recorded message. */
void mr_world_break(mr_world *world, mr_status status);

/* For a device that is waited for, which may wait for other ranks: moves operations on; fails, and
 * breaks the world, when the wait can have no end. `world` is an mr_world. */
mr_status mr_world_look(void *world);

#endif
