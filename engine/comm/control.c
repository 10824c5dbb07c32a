/* The control board: records travel over a communicator of their own. Announcing posts the
 * exchange; comparing waits for its end without blocking. */
#include <stddef.h>

#include "base/memory.h"
#include "comm/board.h"

/* Of one operation: kept in handle->exchange until it was compared. */
typedef struct exchange {
  void *request; /* the transport's */
  mr_record theirs[];
} exchange;

static mr_status announce(mr_board *board, mr_handle *handle, int *done) {
  (void)board;
  int records = mr_record_is_message(&handle->record) ? 1 : handle->group->size;
  int64_t bytes = (int64_t)sizeof(exchange) + records * (int64_t)sizeof(mr_record);
  void *block = NULL;
  MR_TRY(mr_memory_allocate(bytes, &block));
  exchange *made = block;
  handle->exchange = made;
  *done = 1;
  return handle->group->world->transport->exchange(handle, made->theirs, &made->request);
}

static mr_status compare_all(mr_handle *handle, const mr_record *records) {
  int differ = 0;
  for (int m = 0; m < handle->group->size; m++) {
    differ |= !mr_record_agrees(&records[m], &handle->record);
    mr_record_settle(handle, &records[m]);
  }
  if (!differ) return MR_OK;
  void *arrived = NULL;
  MR_TRY(mr_memory_allocate(handle->group->size, &arrived));
  for (int m = 0; m < handle->group->size; m++) ((char *)arrived)[m] = 1;
  mr_status status = mr_record_fail(handle->group, handle->sequence, records, arrived);
  mr_memory_release(arrived);
  return status;
}

static mr_status compare(mr_board *board, mr_handle *handle, int *agreed) {
  (void)board;
  exchange *made = handle->exchange;
  *agreed = 0;
  int done = 0;
  MR_TRY(handle->group->world->transport->exchanged(&made->request, &done));
  if (!done) return MR_OK;
  mr_status status = MR_OK;
  if (!mr_record_is_message(&handle->record)) {
    status = compare_all(handle, made->theirs);
  } else if (!mr_record_meets(&handle->record, made->theirs)) {
    status = mr_record_fail_pair(handle->group, handle->sequence, &handle->record, made->theirs);
  } else {
    mr_record_settle(handle, made->theirs);
  }
  *agreed = status == MR_OK;
  handle->exchange = NULL;
  mr_memory_release(made);
  return status;
}

static void release(mr_board *board) { mr_memory_release(board); }

mr_status mr_board_open_control(mr_group *group, mr_board **board) {
  (void)group;
  *board = NULL;
  void *block = NULL;
  MR_TRY(mr_memory_allocate((int64_t)sizeof(mr_board), &block));
  mr_board *made = block;
  *made = (mr_board){"control", announce, compare, release};
  *board = made;
  return MR_OK;
}
