#define _GNU_SOURCE 1
#include "base/call.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

static _Atomic int64_t calls, fail_countdown;

int mr_call_fails(void) {
  atomic_fetch_add(&calls, 1);
  if (atomic_load(&fail_countdown) <= 0) return 0;
  if (atomic_fetch_sub(&fail_countdown, 1) != 1) return 0;
  errno = ENOSPC;
  return 1;
}

void mr_file_fail_at(int64_t n) { atomic_store(&fail_countdown, n); }

int64_t mr_file_calls(void) { return atomic_load(&calls); }

int mr_call_close(int descriptor) {
  int failing = mr_call_fails();
  int result = close(descriptor);
  if (!failing) return result;
  errno = ENOSPC;
  return -1;
}

mr_status mr_call_open_regular(const char *path, int *descriptor) {
  struct stat info;
  mr_status status = MR_OK;
  /* without O_NONBLOCK, the opening of a pipe waits for somebody who writes into it */
  *descriptor = MR_CALL(open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (*descriptor < 0) return mr_call_error("open", path);
  if (MR_CALL(fstat(*descriptor, &info)) != 0)
    status = mr_call_error("read", path);
  else if (!S_ISREG(info.st_mode))
    status = mr_fail(MR_ERROR_IO, "%s is no regular file", path);
  if (status == MR_OK) return MR_OK;
  (void)close(*descriptor);
  *descriptor = -1;
  return status;
}

mr_status mr_call_sync_folder(const char *path) {
  mr_status status = MR_OK;
  int folder = MR_CALL(open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder < 0) return mr_call_error("open folder", path);
  if (MR_CALL(fsync(folder)) != 0 && errno != EINVAL && errno != ENOTSUP)
    status = mr_call_error("sync folder", path);
  if (mr_call_close(folder) != 0) MR_KEEP(status, mr_call_error("close folder", path));
  return status;
}

mr_status mr_call_error(const char *verb, const char *path) {
  int reason = errno;
  const char *full = reason == ENOSPC || reason == EDQUOT ? "disk full: " : "";
  return mr_fail(MR_ERROR_IO, "cannot %s %s: %s%s", verb, path, full, strerror(reason));
}
