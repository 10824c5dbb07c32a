#define _GNU_SOURCE 1
#include "base/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/call.h"

enum { MAX_DEPTH = 100 };

/* What is done to one entry of an open folder; `depth` counts the folders above it. */
typedef mr_status (*visit)(int holder, const char *name, int depth);

/* Visits each entry of the folder `name` of `holder`. *folder is the opened folder, to be closed
 * by the caller in any case; NULL when it could not be opened. */
static mr_status visit_all(int holder, const char *name, int depth, visit each, DIR **folder) {
  *folder = NULL;
  if (depth > MAX_DEPTH)
    return mr_fail(MR_ERROR_IO, "%s lies more than %d folders deep", name, (int)MAX_DEPTH);
  int opened = MR_CALL(openat(holder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (opened < 0) return mr_call_error("open folder", name);
  *folder = fdopendir(opened);
  if (!*folder) {
    mr_status status = mr_call_error("list", name);
    (void)close(opened);
    return status;
  }
  for (;;) {
    errno = 0;
    const struct dirent *entry = mr_call_fails() ? NULL : readdir(*folder);
    if (!entry) return errno ? mr_call_error("list", name) : MR_OK;
    if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
    MR_TRY(each(opened, entry->d_name, depth + 1));
  }
}

static mr_status remove_entry(int holder, const char *name, int depth) {
  struct stat info;
  if (MR_CALL(fstatat(holder, name, &info, AT_SYMLINK_NOFOLLOW)) != 0)
    return mr_call_error("remove", name);
  int flags = 0;
  if (S_ISDIR(info.st_mode)) {
    DIR *folder = NULL;
    mr_status status = visit_all(holder, name, depth, remove_entry, &folder);
    if (folder) (void)closedir(folder);
    MR_TRY(status);
    flags = AT_REMOVEDIR;
  }
  return MR_CALL(unlinkat(holder, name, flags)) == 0 ? MR_OK : mr_call_error("remove", name);
}

mr_status mr_tree_remove(int holder, const char *name) { return remove_entry(holder, name, 0); }

static mr_status sync_file(int holder, const char *name) {
  int opened = MR_CALL(openat(holder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (opened < 0) return mr_call_error("open", name);
  mr_status status = MR_OK;
  if (MR_CALL(fsync(opened)) != 0) status = mr_call_error("sync", name);
  if (mr_call_close(opened) != 0) MR_KEEP(status, mr_call_error("close", name));
  return status;
}

static mr_status sync_entry(int holder, const char *name, int depth) {
  struct stat info;
  if (MR_CALL(fstatat(holder, name, &info, AT_SYMLINK_NOFOLLOW)) != 0)
    return mr_call_error("sync", name);
  if (S_ISREG(info.st_mode)) return sync_file(holder, name);
  if (!S_ISDIR(info.st_mode)) return MR_OK;
  DIR *folder = NULL;
  mr_status status = visit_all(holder, name, depth, sync_entry, &folder);
  if (status == MR_OK && folder && MR_CALL(fsync(dirfd(folder))) != 0 && errno != EINVAL)
    status = mr_call_error("sync folder", name);
  if (folder) (void)closedir(folder);
  return status;
}

mr_status mr_tree_sync(const char *path) {
  mr_status status = sync_entry(AT_FDCWD, path, 0);
  return status == MR_OK ? MR_OK : mr_fail_within(status, "%s", path);
}
