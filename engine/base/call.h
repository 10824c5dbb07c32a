/* System calls of the file layer: each one can be told to fail, and each failure becomes a status
 * that names the path. For the files of this floor that touch a disk. */
#ifndef MR_BASE_CALL_H
#define MR_BASE_CALL_H

#include "base/status.h"

/* 1, with errno = ENOSPC, when this call is the one that mr_file_fail_at chose. */
int mr_call_fails(void);

/* The value of `call`, or -1 without running it when it is told to fail. */
#define MR_CALL(call) (mr_call_fails() ? -1 : (call))

/* close(2); when told to fail the descriptor is closed all the same. */
int mr_call_close(int descriptor);

/* Opens a regular file for reading and sets *descriptor, which the caller closes. Never waits: what
 * is no regular file (a folder, a pipe, a device) is MR_ERROR_IO and is not read. */
mr_status mr_call_open_regular(const char *path, int *descriptor);

/* fsync of a folder, after a name in it changed. A file system without it is no error. */
mr_status mr_call_sync_folder(const char *path);

/* "cannot VERB PATH: reason" from errno: MR_ERROR_IO. The reason of a full disk begins with
 * "disk full". */
mr_status mr_call_error(const char *verb, const char *path);

#endif
