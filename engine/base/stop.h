/* Requests to stop: a long command notes them and ends where its work is whole. */
#ifndef MR_BASE_STOP_H
#define MR_BASE_STOP_H

/* From now on SIGINT, SIGTERM and SIGUSR1 are noted instead of ending the process. A second SIGINT
 * or SIGTERM ends it as usual. */
void mr_stop_watch(void);

/* The signal that was noted, or 0. */
int mr_stop_requested(void);

#endif
