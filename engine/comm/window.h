/* Windows: memory of which every member of a group has a part of the same size, and in which sums
 * over the members are formed in place.
 *
 * An all_reduce of reals by sum or mean whose data lie at the same place of the same window on all
 * members takes this way by itself; one that does not goes through the transport. Each member sums
 * its share, whole lines of 64 bytes, over the members of its host in rank order, and stores the
 * sum in the parts of all. Across hosts one reduction for each host is between the two: member i
 * of each host sums share i with the other hosts'. So on one host the bits depend on the order of
 * the ranks alone, wherever a buffer was cut. */
#ifndef MR_COMM_WINDOW_H
#define MR_COMM_WINDOW_H

#include "comm/comm.h"
#include "device/device.h"

typedef struct mr_window mr_window;

enum { MR_WINDOW_WHY = 160 };

/* Opens a window with a part of `bytes` (above 0) of zeros for each member, summed by the kernels
 * of `device`, whose memory is the host's and which outlives the window. Collective; posted and
 * compared like every operation. Where the members cannot have one, all get *window = NULL and
 * MR_OK: `why` says what is in the way, "" where no host has two members.
 * MAREA_WINDOW_BYTES=N lets a host give N bytes at the most, for specs.
 * Errors: those of every operation. */
mr_status mr_window_open(mr_group *group, mr_device *device, int64_t bytes, const char *line,
                         mr_window **window, char why[MR_WINDOW_WHY]);

/* Gives this member's part back; nothing may be under way in it. Members need not close together.
 * NULL does nothing. */
void mr_window_close(mr_window *window);

/* This member's part: aligned to a page, borrowed. */
void *mr_window_part(const mr_window *window);

/* The group's window in which this member's bytes lie, borrowed, or NULL. */
mr_window *mr_window_find(const mr_group *group, const void *data, int64_t bytes);

/* 1 when the members are on several hosts, between which the transport reduces. */
int mr_window_crosses_hosts(const mr_window *window);

#endif
