/* Ranks: groups of them, and the operations that move data within a group.
 *
 * A program opens the world once. Every operation is posted, compared with what the other
 * members of the group posted at the same place in the order, and only then started: ranks that
 * disagree all fail with MR_ERROR_RANKS and each other's lines, before any data is read.
 * Collectives of one group start in the order in which they were posted; messages between two
 * ranks likewise, independently of the collectives.
 *
 * Data are raw buffers, `count` elements of a dtype, in memory of `device`; NULL stands for the
 * host. What lies on a device without host memory goes through the host: it is read in the order
 * of the device's work, behind what was called before the post, and its results are there for what
 * is called after the handle is done. Members may hold theirs on different kinds of devices.
 * Between GPUs data go by NCCL, in the same order, where mr_comm_use_nccl was called. A buffer must
 * stay valid and untouched from the post until its handle is done. A count of 0 is compared and
 * moves nothing. `line` is the caller's place ("recipes/x.lua:12") for messages, cut at
 * MR_LINE_BYTES - 1, or NULL. Ranks are 0-based; ranks in messages are those of the world.
 *
 * The same operation on the same ranks, counts and values gives the same bits every time, and
 * the same bits on every rank. All calls come from one thread.
 *
 * Errors of every operation: MR_ERROR_ARGUMENT (negative count, unknown rank, a mean of
 * integers), MR_ERROR_MEMORY, MR_ERROR_RANKS (disagreement; a rank is lost or has finished;
 * ranks that wait for each other), MR_ERROR_PEER (another rank stopped first with an error). */
#ifndef MR_COMM_COMM_H
#define MR_COMM_COMM_H

#include <stdint.h>

#include "base/dtype.h"
#include "base/status.h"
#include "comm/ledger.h"
#include "device/device.h"

enum { MR_LINE_BYTES = 120 };

typedef struct mr_group mr_group;
typedef struct mr_handle mr_handle;

typedef enum mr_reduction { MR_SUM, MR_MEAN, MR_MAX, MR_MIN, MR_REDUCTION_COUNT } mr_reduction;

/* The reduction called "sum", "mean", "max" or "min"; -1 for another name. */
int mr_reduction_find(const char *name);

/* Opens the world and sets *world, owned by the caller: all ranks when this process was started
 * as one of several (mpirun, srun), else this process alone, for which MPI is never started.
 * A second call gives the same world, retained. Errors: MR_ERROR_ENVIRONMENT, MR_ERROR_MEMORY,
 * MR_ERROR_ARGUMENT after the world was closed. */
mr_status mr_comm_open(mr_group **world);

/* The world while it is open and this rank has not left it, borrowed; else NULL. */
mr_group *mr_comm_world(void);

enum { MR_NCCL_WHY = 512 };

/* Lets this group, the world, and every group split from it later move data between the GPUs of
 * its ranks by NCCL; `device` is this rank's, and no two ranks have the same. Data of other
 * devices, and groups that were split before, go on as they did. Collective. *name: "NCCL 2.28.9",
 * static; NULL where NCCL is not used, and then `why` says what is missing, "" where nothing is:
 * for one rank, or with MAREA_NCCL=off. MAREA_NCCL=always: for one rank too. An operation that
 * takes longer than MAREA_NCCL_SECONDS, 600 by default, fails with MR_ERROR_RANKS on this rank.
 * Errors: MR_ERROR_ENVIRONMENT, MR_ERROR_MEMORY, MR_ERROR_RANKS, MR_ERROR_PEER. */
mr_status mr_comm_use_nccl(mr_group *world, mr_device *device, const char **name,
                           char why[MR_NCCL_WHY]);

/* What moves data of `device` within a group without the host: "NCCL 2.28.9", or NULL. */
const char *mr_group_carrier(const mr_group *group, const mr_device *device);

/* Ends the world in good order: completes what is pending, waits until all ranks close, shuts
 * MPI down. On failure nothing was shut down and mr_comm_leave is what remains. The group stays
 * the caller's to release; operations on any group fail from then on. */
mr_status mr_comm_close(mr_group *world);

/* For a rank that stops with an error: tells the other ranks, which get MR_ERROR_PEER and
 * "rank 1 stopped: MESSAGE" from whatever they wait in or post next, and waits up to two seconds
 * for them to leave as well. Afterwards the process is to end by exit() with
 * mr_comm_peer_exit_code. Ranks that share no host learn of it from mr_comm_stop only. */
void mr_comm_leave(mr_group *world, int exit_code, const char *message);

/* The last call of a rank that has left, after everything was printed: where ranks share no host
 * it waits a moment, for those that fail alike to say so, and lets MPI end all of them, this one
 * too. Elsewhere nothing happens. */
void mr_comm_stop(mr_group *world);

/* The exit code of the rank that left first, this one included, so that all end with the same
 * code; 6 when none is known to have left. */
int mr_comm_peer_exit_code(const mr_group *world);

/* After mr_comm_leave: 1 when every rank has left with this rank's code and message, so that one
 * of them may speak for all; 0 also where that cannot be seen. */
int mr_comm_left_alike(const mr_group *world);

/* "one process", "shared" or "control": how records are compared. Static. */
const char *mr_comm_board_name(const mr_group *group);

int mr_group_rank(const mr_group *group);
int mr_group_size(const mr_group *group);
/* Among the group's members on this host. */
int mr_group_local_rank(const mr_group *group);
int mr_group_local_size(const mr_group *group);
/* The world's rank of a member. */
int mr_group_world_rank(const mr_group *group, int member);
/* "the world", or "group 1 of the world" after its colour. Owned by the group. */
const char *mr_group_name(const mr_group *group);

/* Splits a group: members with the same colour (>= 0) form a new group, ordered by key, then by
 * rank. A colour of -1 joins none and sets *group to NULL. Collective. */
mr_status mr_group_split(mr_group *parent, int color, int key, const char *line, mr_group **group);

mr_group *mr_group_retain(mr_group *group);
/* NULL does nothing. Communicators live until the world closes, so ranks may release in any
 * order. */
void mr_group_release(mr_group *group);

/* Calls and bytes so far. */
mr_ledger mr_ledger_read(const mr_group *group);

/* Moves every pending operation of the world on, without waiting. Fails only when no operation
 * can succeed any more (MR_ERROR_PEER, MR_ERROR_RANKS); a disagreement belongs to its handle. */
mr_status mr_group_progress(mr_group *group);

/* Seconds that this process has spent waiting in mr_handle_wait so far, and so in every operation
 * that waits: for other ranks to post, and for data to arrive. Readers take differences. */
double mr_comm_waited_seconds(void);

/* Seconds that this process has spent summing in shared windows so far; *waiting: those that it
 * did so within mr_handle_wait, which are part of mr_comm_waited_seconds too. */
double mr_comm_summed_seconds(double *waiting);

/* 1 when the operation has ended, well or not; moves pending operations on. */
int mr_handle_test(mr_handle *handle);
/* Waits for the end and returns the operation's status; may be called again. */
mr_status mr_handle_wait(mr_handle *handle);
/* Gives the handle back; an operation that is pending is completed first, and its failure is
 * then not reported. NULL does nothing. */
void mr_handle_release(mr_handle *handle);

/* The operations. Each posts and sets *handle, owned by the caller, to wait on. */

/* data[i] = reduction over all ranks of data[i], in place. MR_MEAN is the sum times 1/size, for
 * f32 and f64. A NaN on any rank makes max and min NaN. */
mr_status mr_group_all_reduce_async(mr_group *group, mr_device *device, void *data, int64_t count,
                                    mr_dtype dtype, mr_reduction reduction, const char *line,
                                    mr_handle **handle);

/* data of `root` replaces everybody's. */
mr_status mr_group_broadcast_async(mr_group *group, mr_device *device, void *data, int64_t count,
                                   mr_dtype dtype, int root, const char *line, mr_handle **handle);

/* result[size][count] = the ranks' data[count], in rank order. data may be this rank's own block
 * of result, or not overlap it. */
mr_status mr_group_all_gather_async(mr_group *group, mr_device *device, const void *data,
                                    void *result, int64_t count, mr_dtype dtype, const char *line,
                                    mr_handle **handle);

/* result[count] = this rank's block of the reduction of data[size][count]; they do not overlap.
 * Reductions as for all_reduce. */
mr_status mr_group_reduce_scatter_async(mr_group *group, mr_device *device, const void *data,
                                        void *result, int64_t count, mr_dtype dtype,
                                        mr_reduction reduction, const char *line,
                                        mr_handle **handle);

/* Block r of result[size][count] = block `rank` of rank r's data[size][count]; they do not
 * overlap. */
mr_status mr_group_all_to_all_async(mr_group *group, mr_device *device, const void *data,
                                    void *result, int64_t count, mr_dtype dtype, const char *line,
                                    mr_handle **handle);

/* Messages. The k-th send from a to b meets the k-th receive of b from a; count, dtype and tag
 * must agree. A send is not done before its receive was posted. A rank may send to itself. */
mr_status mr_group_send_async(mr_group *group, mr_device *device, const void *data, int64_t count,
                              mr_dtype dtype, int to, int tag, const char *line,
                              mr_handle **handle);
mr_status mr_group_receive_async(mr_group *group, mr_device *device, void *data, int64_t count,
                                 mr_dtype dtype, int from, int tag, const char *line,
                                 mr_handle **handle);

/* The transport's own blocking sum of f32 in place: without comparison, ledger or progress of
 * anything else. Only for measuring the all-reduce above beside it, with nothing under way. */
mr_status mr_group_plain_all_reduce(mr_group *group, float *data, int64_t count);

/* Done when every member has posted it. */
mr_status mr_group_barrier_async(mr_group *group, const char *line, mr_handle **handle);

#endif
