/* Locks that keep two processes out of one folder.
 *
 * The lock file lies beside the folder, ".NAME.lock", holds the holder's process id and host, and
 * is gone when released. The system frees the lock of a process that dies. */
#ifndef MR_BASE_LOCK_H
#define MR_BASE_LOCK_H

#include "base/status.h"

typedef struct mr_lock mr_lock;

enum { MR_LOCK_HOLDER = 320 };

/* Takes the lock of the folder `path`, which need not exist yet, without waiting. Errors:
 * MR_ERROR_ENVIRONMENT "folder PATH is in use by process PID on HOST"; MR_ERROR_IO. */
mr_status mr_lock_acquire(const char *path, mr_lock **lock);

/* Who holds the lock of the folder `path`: "process PID on HOST", or "" when nobody does. Takes no
 * lock and leaves no file; what a dead process left counts as nobody. Errors: MR_ERROR_IO. */
mr_status mr_lock_holder(const char *path, char holder[MR_LOCK_HOLDER]);

/* Gives the lock back. NULL does nothing. */
void mr_lock_release(mr_lock *lock);

#endif
