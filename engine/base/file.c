#define _GNU_SOURCE 1
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/call.h"
#include "base/memory.h"
#include "base/path.h"

enum { FIRST_PIECE = 64 * 1024, MAX_TEMPORARIES = 100, FILE_MODE = 0666 };

struct mr_file_writer {
  int descriptor; /* -1 once closed */
  char *path;
  char *temporary; /* NULL once renamed */
};

/* Reading */

/* Makes *text a block of `capacity` bytes that begins with the `used` bytes of the old one. */
static mr_status grow(char **text, int64_t used, int64_t capacity) {
  void *larger = NULL;
  MR_TRY(mr_memory_allocate_raw(capacity, &larger));
  if (used > 0) memcpy(larger, *text, (size_t)used);
  mr_memory_release(*text);
  *text = larger;
  return MR_OK;
}

static mr_status read_all(int descriptor, const char *path, char **text, int64_t *bytes) {
  struct stat info;
  if (MR_CALL(fstat(descriptor, &info)) != 0) return mr_call_error("read", path);
  int64_t used = 0, capacity = info.st_size > 0 ? (int64_t)info.st_size + 2 : FIRST_PIECE;
  MR_TRY(grow(text, 0, capacity));
  for (;;) {
    if (used + 1 == capacity) {
      MR_TRY(grow(text, used, 2 * capacity));
      capacity *= 2;
    }
    ssize_t got = MR_CALL(read(descriptor, *text + used, (size_t)(capacity - used - 1)));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return mr_call_error("read", path);
    if (got == 0) break;
    used += got;
  }
  (*text)[used] = '\0';
  *bytes = used;
  return MR_OK;
}

mr_status mr_file_read(const char *path, char **text, int64_t *bytes) {
  *text = NULL;
  *bytes = 0;
  int descriptor = -1;
  MR_TRY(mr_call_open_regular(path, &descriptor));
  mr_status status = read_all(descriptor, path, text, bytes);
  if (mr_call_close(descriptor) != 0) MR_KEEP(status, mr_call_error("close", path));
  if (status == MR_OK) return MR_OK;
  mr_memory_release(*text);
  *text = NULL;
  return status;
}

/* Writing */

static mr_status write_all(int descriptor, const char *path, const void *data, int64_t bytes) {
  const char *rest = data;
  while (bytes > 0) {
    ssize_t done = MR_CALL(write(descriptor, rest, (size_t)bytes));
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) return mr_call_error("write", path);
    rest += done;
    bytes -= done;
  }
  return MR_OK;
}

/* Opens a file that did not exist under the writer's temporary name. */
static mr_status open_temporary(mr_file_writer *writer) {
  for (int attempt = 0; attempt < MAX_TEMPORARIES; attempt++) {
    MR_TRY(mr_path_temporary(writer->path, attempt, &writer->temporary));
    writer->descriptor =
        MR_CALL(open(writer->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, FILE_MODE));
    if (writer->descriptor >= 0) return MR_OK;
    int taken = errno == EEXIST;
    if (!taken) (void)mr_call_error("create", writer->path);
    mr_memory_release(writer->temporary);
    writer->temporary = NULL;
    if (!taken) return MR_ERROR_IO;
  }
  return mr_fail(MR_ERROR_IO, "cannot create %s: its %d temporary names are taken", writer->path,
                 (int)MAX_TEMPORARIES);
}

mr_status mr_file_writer_new(const char *path, mr_file_writer **writer) {
  mr_status status;
  void *block = NULL;
  *writer = NULL;
  MR_TRY(mr_memory_allocate(sizeof(mr_file_writer), &block));
  mr_file_writer *made = block;
  made->descriptor = -1;
  MR_GOTO(mr_memory_copy_string(path, &made->path));
  MR_GOTO(open_temporary(made));
  *writer = made;
  return MR_OK;
cleanup:
  mr_file_writer_release(made);
  return status;
}

mr_status mr_file_writer_add(mr_file_writer *writer, const void *data, int64_t bytes) {
  if (writer->descriptor < 0)
    return mr_fail(MR_ERROR_ARGUMENT, "%s is already written", writer->path);
  return write_all(writer->descriptor, writer->path, data, bytes);
}

mr_status mr_file_writer_commit(mr_file_writer *writer) {
  if (writer->descriptor < 0)
    return mr_fail(MR_ERROR_ARGUMENT, "%s is already written", writer->path);
  if (MR_CALL(fsync(writer->descriptor)) != 0) return mr_call_error("sync", writer->path);
  int closed = mr_call_close(writer->descriptor);
  writer->descriptor = -1;
  if (closed != 0) return mr_call_error("close", writer->path);
  char *parent = NULL;
  MR_TRY(mr_path_parent(writer->path, &parent));
  mr_status status = MR_OK;
  if (MR_CALL(rename(writer->temporary, writer->path)) != 0) {
    status = mr_call_error("write", writer->path);
  } else {
    mr_memory_release(writer->temporary);
    writer->temporary = NULL;
    status = mr_call_sync_folder(parent);
  }
  mr_memory_release(parent);
  return status;
}

void mr_file_writer_release(mr_file_writer *writer) {
  if (!writer) return;
  if (writer->descriptor >= 0) (void)close(writer->descriptor);
  if (writer->temporary) (void)unlink(writer->temporary);
  mr_memory_release(writer->temporary);
  mr_memory_release(writer->path);
  mr_memory_release(writer);
}

mr_status mr_file_write(const char *path, const void *data, int64_t bytes) {
  mr_file_writer *writer = NULL;
  MR_TRY(mr_file_writer_new(path, &writer));
  mr_status status = mr_file_writer_add(writer, data, bytes);
  if (status == MR_OK) status = mr_file_writer_commit(writer);
  mr_file_writer_release(writer);
  return status;
}

/* Names */

int mr_file_exists(const char *path) {
  struct stat info;
  return stat(path, &info) == 0;
}

int64_t mr_file_bytes(const char *path) {
  struct stat info;
  return stat(path, &info) == 0 && S_ISREG(info.st_mode) ? (int64_t)info.st_size : -1;
}

int mr_file_is_link(const char *path) {
  struct stat info;
  return lstat(path, &info) == 0 && S_ISLNK(info.st_mode);
}

mr_status mr_file_remove(const char *path) {
  return MR_CALL(unlink(path)) == 0 ? MR_OK : mr_call_error("remove", path);
}

/* rename(2) that fails with EEXIST instead of replacing `to`. */
static int rename_to_new(const char *from, const char *to) {
  int result = MR_CALL(renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE));
  if (result == 0 || (errno != EINVAL && errno != ENOSYS)) return result;
  struct stat info;
  if (lstat(to, &info) == 0) {
    errno = EEXIST;
    return -1;
  }
  return MR_CALL(rename(from, to));
}

mr_status mr_file_move(const char *from, const char *to) {
  char *old_parent = NULL, *new_parent = NULL;
  mr_status status = mr_path_parent(from, &old_parent);
  if (status == MR_OK) status = mr_path_parent(to, &new_parent);
  if (status == MR_OK && rename_to_new(from, to) != 0) {
    status = errno == ENOENT ? mr_call_error("move", from) : mr_call_error("move to", to);
  }
  if (status == MR_OK) status = mr_call_sync_folder(new_parent);
  if (status == MR_OK && strcmp(old_parent, new_parent) != 0)
    status = mr_call_sync_folder(old_parent);
  mr_memory_release(old_parent);
  mr_memory_release(new_parent);
  return status;
}
