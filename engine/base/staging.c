/* Folders that appear complete or not at all (base/folder.h). */
#define _GNU_SOURCE 1
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/call.h"
#include "base/folder.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/tree.h"

enum { MAX_STAGINGS = 100, FOLDER_MODE = 0777 };

struct mr_staging {
  char *path;   /* the final name */
  char *staged; /* the folder that is written; once committed, the old folder that it replaced */
  char *parent;
  int committed;
  int remains; /* something lies at `staged` that discard has to remove */
};

static mr_status make_staged(mr_staging *staging) {
  for (int attempt = 0; attempt < MAX_STAGINGS; attempt++) {
    MR_TRY(mr_path_temporary(staging->path, attempt, &staging->staged));
    if (MR_CALL(mkdir(staging->staged, FOLDER_MODE)) == 0) return MR_OK;
    int taken = errno == EEXIST;
    if (!taken) (void)mr_call_error("make folder", staging->staged);
    mr_memory_release(staging->staged);
    staging->staged = NULL;
    if (!taken) return MR_ERROR_IO;
  }
  return mr_fail(MR_ERROR_IO, "cannot write folder %s: its %d temporary names are taken",
                 staging->path, (int)MAX_STAGINGS);
}

/* A copy of `path` without slashes at its end. */
static mr_status copy_path(const char *path, char **copy) {
  MR_TRY(mr_memory_copy_string(path, copy));
  size_t end = strlen(*copy);
  while (end > 1 && (*copy)[end - 1] == '/') (*copy)[--end] = '\0';
  return MR_OK;
}

mr_status mr_folder_begin(const char *path, mr_staging **staging) {
  mr_status status;
  void *block = NULL;
  *staging = NULL;
  MR_TRY(mr_memory_allocate(sizeof(mr_staging), &block));
  mr_staging *made = block;
  MR_GOTO(copy_path(path, &made->path));
  MR_GOTO(mr_path_parent(path, &made->parent));
  MR_GOTO(mr_folder_make(made->parent));
  MR_GOTO(make_staged(made));
  made->remains = 1;
  *staging = made;
  return MR_OK;
cleanup:
  mr_folder_discard(made);
  return status;
}

const char *mr_folder_staged(const mr_staging *staging) { return staging->staged; }

/* The end of a commit: the new folder has its name, the old one lies at `staged`. */
static mr_status finish_replacing(mr_staging *staging) {
  staging->committed = 1;
  mr_status status = mr_call_sync_folder(staging->parent);
  if (status == MR_OK) status = mr_tree_remove(AT_FDCWD, staging->staged);
  staging->remains = status != MR_OK;
  return status;
}

/* For file systems without exchange: the old folder waits under a third name, and goes back when
 * the new one cannot take its place. */
static mr_status replace_in_steps(mr_staging *staging) {
  char suffix[32];
  char *old = NULL;
  mr_status status;
  (void)snprintf(suffix, sizeof suffix, ".old-%d", (int)getpid());
  MR_TRY(mr_path_beside(staging->path, suffix, &old));
  if (MR_CALL(rename(staging->path, old)) != 0) {
    status = mr_call_error("move aside", staging->path);
  } else if (MR_CALL(rename(staging->staged, staging->path)) != 0) {
    status = mr_call_error("write folder", staging->path);
    if (rename(old, staging->path) != 0) status = mr_call_error("put back", staging->path);
  } else {
    char *gone = staging->staged;
    staging->staged = old;
    old = gone;
    status = finish_replacing(staging);
  }
  mr_memory_release(old);
  return status;
}

static mr_status replace(mr_staging *staging) {
  if (MR_CALL(renameat2(AT_FDCWD, staging->staged, AT_FDCWD, staging->path, RENAME_EXCHANGE)) == 0)
    return finish_replacing(staging);
  if (errno == EINVAL || errno == ENOSYS) return replace_in_steps(staging);
  return mr_call_error("write folder", staging->path);
}

mr_status mr_folder_commit(mr_staging *staging) {
  if (staging->committed)
    return mr_fail(MR_ERROR_ARGUMENT, "folder %s is already written", staging->path);
  MR_TRY(mr_tree_sync(staging->staged));
  struct stat info;
  if (lstat(staging->path, &info) != 0) {
    if (MR_CALL(rename(staging->staged, staging->path)) != 0)
      return mr_call_error("write folder", staging->path);
    staging->committed = 1;
    staging->remains = 0;
    return mr_call_sync_folder(staging->parent);
  }
  if (!mr_folder_exists(staging->path))
    return mr_fail(MR_ERROR_IO, "cannot write folder %s: a file has this name", staging->path);
  return replace(staging);
}

void mr_folder_discard(mr_staging *staging) {
  if (!staging) return;
  if (staging->remains) (void)mr_tree_remove(AT_FDCWD, staging->staged);
  mr_memory_release(staging->path);
  mr_memory_release(staging->staged);
  mr_memory_release(staging->parent);
  mr_memory_release(staging);
}
