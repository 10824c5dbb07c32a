/* Boards: where the members of a group put the records of their operations and read those of the
 * others. In the shared form through memory of one host, in the control form over a communicator
 * of its own. MAREA_BOARD=shared or control chooses one for specs. */
#ifndef MR_COMM_BOARD_H
#define MR_COMM_BOARD_H

#include "comm/transport.h"

struct mr_board {
  const char *name; /* "shared", "control" */
  /* Puts the operation's record where the others see it. *done = 0: no room yet, try again. */
  mr_status (*announce)(mr_board *board, mr_handle *handle, int *done);
  /* *agreed = 1 when all records that it needs are there and say the same; else sets
   * handle->missing. Settles with each record how the data move (mr_record_settle).
   * MR_ERROR_RANKS: they disagree; anything else: the board failed. */
  mr_status (*compare)(mr_board *board, mr_handle *handle, int *agreed);
  void (*release)(mr_board *board);
};

/* The board of a new group of more than one member. Collective. */
mr_status mr_board_open(mr_group *group, mr_board **board);
/* NULL does nothing. */
void mr_board_release(mr_board *board);

/* The two forms. The shared one sets *board to NULL where the members cannot share memory. */
mr_status mr_board_open_shared(mr_group *group, mr_board **board);
mr_status mr_board_open_control(mr_group *group, mr_board **board);

/* 1 when all members are on one host and MAREA_BOARD does not say control. */
int mr_board_wants_shared(const mr_group *group);

#endif
