/* Presence: what the ranks of one host know of each other beside their operations: who works, who
 * closes, who left with which error, who is gone, and who waits for whom.
 *
 * Invariant: each rank writes its own entry only; `first_left` is set once. */
#ifndef MR_COMM_PRESENCE_H
#define MR_COMM_PRESENCE_H

#include "base/status.h"
#include "comm/comm.h"

typedef struct mr_presence mr_presence;

/* Collective over the world. *presence is NULL where its ranks cannot share memory. */
mr_status mr_presence_open(mr_group *world, mr_presence **presence);
/* NULL does nothing. */
void mr_presence_release(mr_presence *presence);

/* Says that this rank will post no more. */
void mr_presence_set_closing(mr_presence *presence);
void mr_presence_set_closed(mr_presence *presence);
/* Says that this rank stops with an error; then waits up to `seconds` until no rank works. */
void mr_presence_leave(mr_presence *presence, int exit_code, const char *message, double seconds);

/* MR_ERROR_PEER when another rank has left. Cheap: for every turn of a waiting loop. */
mr_status mr_presence_check(const mr_presence *presence);
/* The code of the first that left, or -1. */
int mr_presence_exit_code(const mr_presence *presence);
/* For a rank that has left: 1 when all have, with the same code and message. */
int mr_presence_left_alike(const mr_presence *presence);

/* For a rank that has waited long, every few milliseconds: `text` says in what it waits,
 * `missing` is the rank whose record has not come, or -1. MR_ERROR_RANKS when a rank is lost,
 * when the missing one has finished, or when ranks wait for each other in a circle. */
mr_status mr_presence_wait(mr_presence *presence, const char *text, int missing);
/* The wait is over. */
void mr_presence_resume(mr_presence *presence);

#endif
