/* Files of lines (base/file.h).
 *
 * Invariant: between calls the file is empty or ends in a newline, and `end` is its length. */
#define _GNU_SOURCE 1
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/call.h"
#include "base/file.h"
#include "base/memory.h"

enum { PIECE = 4096, FILE_MODE = 0666 };

struct mr_appender {
  int descriptor;
  int64_t end;
  char *path;
};

/* Sets *end to one past the last newline within the first `length` bytes, 0 without one. */
static mr_status find_last_end(const mr_appender *appender, int64_t length, int64_t *end) {
  char piece[PIECE];
  while (length > 0) {
    int64_t first = length > PIECE ? length - PIECE : 0;
    ssize_t got =
        MR_CALL(pread(appender->descriptor, piece, (size_t)(length - first), (off_t)first));
    if (got < 0 && errno == EINTR) continue;
    if (got != length - first) return mr_call_error("read", appender->path);
    const char *newline = memrchr(piece, '\n', (size_t)got);
    if (newline) {
      *end = first + (newline - piece) + 1;
      return MR_OK;
    }
    length = first;
  }
  *end = 0;
  return MR_OK;
}

static mr_status open_at_end(mr_appender *appender) {
  struct stat info;
  appender->descriptor = MR_CALL(
      open(appender->path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK, FILE_MODE));
  if (appender->descriptor < 0) return mr_call_error("open", appender->path);
  if (MR_CALL(fstat(appender->descriptor, &info)) != 0)
    return mr_call_error("read", appender->path);
  if (S_ISFIFO(info.st_mode)) return mr_fail(MR_ERROR_IO, "%s is no regular file", appender->path);
  MR_TRY(find_last_end(appender, info.st_size, &appender->end));
  if (appender->end < info.st_size &&
      MR_CALL(ftruncate(appender->descriptor, (off_t)appender->end)) != 0)
    return mr_call_error("cut the torn last line of", appender->path);
  return MR_OK;
}

mr_status mr_appender_open(const char *path, mr_appender **appender) {
  mr_status status;
  void *block = NULL;
  *appender = NULL;
  MR_TRY(mr_memory_allocate(sizeof(mr_appender), &block));
  mr_appender *made = block;
  made->descriptor = -1;
  MR_GOTO(mr_memory_copy_string(path, &made->path));
  MR_GOTO(open_at_end(made));
  *appender = made;
  return MR_OK;
cleanup:
  mr_appender_release(made);
  return status;
}

/* Writes `bytes` at once; a part of them, or none, is taken back and is an error. */
static mr_status write_whole(mr_appender *appender, const char *data, int64_t bytes) {
  ssize_t done;
  do {
    done = MR_CALL(write(appender->descriptor, data, (size_t)bytes));
  } while (done < 0 && errno == EINTR);
  if (done == bytes) {
    appender->end += bytes;
    return MR_OK;
  }
  if (done >= 0) errno = ENOSPC; /* only a full disk or quota cuts a write to a file short */
  mr_status status = mr_call_error("write a line to", appender->path);
  if (done > 0 && ftruncate(appender->descriptor, (off_t)appender->end) != 0)
    return mr_call_error("take back half a line of", appender->path);
  return status;
}

mr_status mr_appender_write(mr_appender *appender, const char *line, int64_t bytes) {
  if (memchr(line, '\n', (size_t)bytes))
    return mr_fail(MR_ERROR_ARGUMENT, "a line of %s holds a newline", appender->path);
  void *block = NULL;
  MR_TRY(mr_memory_allocate_raw(bytes + 1, &block));
  memcpy(block, line, (size_t)bytes);
  ((char *)block)[bytes] = '\n';
  mr_status status = write_whole(appender, block, bytes + 1);
  mr_memory_release(block);
  return status;
}

mr_status mr_appender_sync(mr_appender *appender) {
  return MR_CALL(fsync(appender->descriptor)) == 0 ? MR_OK : mr_call_error("sync", appender->path);
}

void mr_appender_release(mr_appender *appender) {
  if (!appender) return;
  if (appender->descriptor >= 0) (void)close(appender->descriptor);
  mr_memory_release(appender->path);
  mr_memory_release(appender);
}
