#define _GNU_SOURCE 1
#include "base/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/call.h"
#include "base/folder.h"
#include "base/memory.h"
#include "base/path.h"

enum { MAX_TRIES = 100, HOST_BYTES = 256, FILE_MODE = 0666 };

struct mr_lock {
  int descriptor;
  char *file;
};

/* What an open lock file says of its holder. */
static void read_holder(int descriptor, char holder[MR_LOCK_HOLDER]) {
  memset(holder, 0, MR_LOCK_HOLDER);
  ssize_t got = pread(descriptor, holder, MR_LOCK_HOLDER - 1, 0);
  if (got > 0 && holder[got - 1] == '\n') holder[got - 1] = '\0';
  if (holder[0] == '\0') (void)snprintf(holder, MR_LOCK_HOLDER, "another process");
}

/* The recorded message says who holds the open lock file of `folder`. */
static mr_status held(int descriptor, const char *folder) {
  char holder[MR_LOCK_HOLDER];
  read_holder(descriptor, holder);
  return mr_fail(MR_ERROR_ENVIRONMENT, "folder %s is in use by %s", folder, holder);
}

/* Whether a holder was a process of this host that is no more. */
static int is_dead(const char *holder) {
  char host[HOST_BYTES] = "", own[HOST_BYTES] = "";
  int id = 0;
  if (sscanf(holder, "process %d on %255s", &id, host) != 2 || id <= 0) return 0;
  (void)gethostname(own, sizeof own - 1);
  return strcmp(host, own) == 0 && kill((pid_t)id, 0) != 0 && errno == ESRCH;
}

/* Nobody locks anything else than a file of his own. */
static int is_regular(int descriptor) {
  struct stat info;
  return fstat(descriptor, &info) == 0 && S_ISREG(info.st_mode);
}

/* The lock is asked for, shared and without waiting, only where it is most likely held: whoever
 * wants it in that moment would be refused. */
static mr_status find_holder(const char *file, char holder[MR_LOCK_HOLDER]) {
  mr_status status = MR_OK;
  int descriptor = MR_CALL(open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (descriptor < 0 && errno == ENOENT) return MR_OK;
  if (descriptor < 0) return mr_call_error("open", file);
  if (!is_regular(descriptor)) {
    (void)close(descriptor);
    return MR_OK;
  }
  read_holder(descriptor, holder);
  if (is_dead(holder) || MR_CALL(flock(descriptor, LOCK_SH | LOCK_NB)) == 0)
    holder[0] = '\0';
  else if (errno != EWOULDBLOCK)
    status = mr_call_error("lock", file);
  (void)close(descriptor);
  return status;
}

mr_status mr_lock_holder(const char *path, char holder[MR_LOCK_HOLDER]) {
  char *file = NULL;
  holder[0] = '\0';
  MR_TRY(mr_path_beside(path, ".lock", &file));
  mr_status status = find_holder(file, holder);
  mr_memory_release(file);
  return status;
}

/* 1 when the open file is still the one of that name: a holder may have removed it. */
static int still_named(int descriptor, const char *path) {
  struct stat opened, named;
  return fstat(descriptor, &opened) == 0 && stat(path, &named) == 0 &&
         opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
}

static mr_status sign(const mr_lock *lock) {
  char host[HOST_BYTES] = "", text[MR_LOCK_HOLDER];
  (void)gethostname(host, sizeof host - 1);
  int length = snprintf(text, sizeof text, "process %d on %s\n", (int)getpid(), host);
  if (MR_CALL(ftruncate(lock->descriptor, 0)) != 0) return mr_call_error("write", lock->file);
  errno = ENOSPC; /* what a short write means */
  if (MR_CALL(pwrite(lock->descriptor, text, (size_t)length, 0)) != length)
    return mr_call_error("write", lock->file);
  return MR_OK;
}

/* Opens and locks the file; *again is set when it vanished in between. */
static mr_status try_once(mr_lock *lock, const char *folder, int *again) {
  *again = 0;
  int descriptor = MR_CALL(open(lock->file, O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK, FILE_MODE));
  if (descriptor < 0 && errno != EISDIR) return mr_call_error("open", lock->file);
  if (descriptor < 0 || !is_regular(descriptor)) {
    if (descriptor >= 0) (void)close(descriptor);
    return mr_fail(MR_ERROR_ENVIRONMENT, "folder %s cannot be locked: %s is no regular file",
                   folder, lock->file);
  }
  mr_status status = MR_OK;
  if (MR_CALL(flock(descriptor, LOCK_EX | LOCK_NB)) != 0)
    status = errno == EWOULDBLOCK ? held(descriptor, folder) : mr_call_error("lock", lock->file);
  else if (!still_named(descriptor, lock->file))
    *again = 1;
  if (status != MR_OK || *again)
    (void)close(descriptor);
  else
    lock->descriptor = descriptor;
  return status;
}

mr_status mr_lock_acquire(const char *path, mr_lock **lock) {
  mr_status status;
  void *block = NULL;
  char *parent = NULL;
  *lock = NULL;
  MR_TRY(mr_memory_allocate(sizeof(mr_lock), &block));
  mr_lock *made = block;
  made->descriptor = -1;
  MR_GOTO(mr_path_beside(path, ".lock", &made->file));
  MR_GOTO(mr_path_parent(path, &parent));
  MR_GOTO(mr_folder_make(parent));
  for (int tries = 0, again = 1; again; tries++) {
    if (tries == MAX_TRIES)
      MR_GOTO(mr_fail(MR_ERROR_ENVIRONMENT, "folder %s is in use: its lock changes hands", path));
    MR_GOTO(try_once(made, path, &again));
  }
  MR_GOTO(sign(made));
  *lock = made;
  made = NULL;
cleanup:
  mr_lock_release(made);
  mr_memory_release(parent);
  return status;
}

void mr_lock_release(mr_lock *lock) {
  if (!lock) return;
  if (lock->descriptor >= 0) {
    (void)unlink(lock->file); /* while it is held, so that nobody locks a file without a name */
    (void)close(lock->descriptor);
  }
  mr_memory_release(lock->file);
  mr_memory_release(lock);
}
