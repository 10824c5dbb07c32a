#define _GNU_SOURCE 1
#include "base/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/call.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/tree.h"

enum { FOLDER_MODE = 0777, FIRST_NAMES = 16 };

int mr_folder_exists(const char *path) {
  struct stat info;
  return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

static mr_status sync_parent(const char *path) {
  char *parent = NULL;
  MR_TRY(mr_path_parent(path, &parent));
  mr_status status = mr_call_sync_folder(parent);
  mr_memory_release(parent);
  return status;
}

/* Makes one folder whose parent exists. */
static mr_status make_one(const char *path) {
  if (mr_folder_exists(path)) return MR_OK;
  if (MR_CALL(mkdir(path, FOLDER_MODE)) == 0) return sync_parent(path);
  int reason = errno;
  if (reason == EEXIST && mr_folder_exists(path)) return MR_OK; /* another process was faster */
  if (reason == EEXIST || reason == ENOTDIR)
    return mr_fail(MR_ERROR_IO, "cannot make folder %s: a file is in its place", path);
  errno = reason;
  return mr_call_error("make folder", path);
}

mr_status mr_folder_make(const char *path) {
  char *partial = NULL;
  MR_TRY(mr_memory_copy_string(path, &partial));
  mr_status status = MR_OK;
  for (char *end = partial; status == MR_OK && *end; end++) {
    if (*end != '/' || end == partial) continue;
    *end = '\0';
    status = make_one(partial);
    *end = '/';
  }
  if (status == MR_OK) status = make_one(partial);
  mr_memory_release(partial);
  return status;
}

/* Listing */

static mr_status add_name(mr_names *names, int64_t *capacity, const char *name) {
  if (names->count == *capacity) {
    int64_t wanted = *capacity ? 2 * *capacity : FIRST_NAMES;
    void *larger = NULL;
    MR_TRY(mr_memory_allocate_array(wanted, sizeof *names->items, &larger));
    if (names->count > 0) memcpy(larger, names->items, (size_t)names->count * sizeof *names->items);
    mr_memory_release(names->items);
    names->items = larger;
    *capacity = wanted;
  }
  MR_TRY(mr_memory_copy_string(name, &names->items[names->count]));
  names->count++;
  return MR_OK;
}

static mr_status add_all(DIR *folder, const char *path, mr_names *names) {
  int64_t capacity = 0;
  for (;;) {
    errno = 0;
    const struct dirent *entry = mr_call_fails() ? NULL : readdir(folder);
    if (!entry) return errno ? mr_call_error("list", path) : MR_OK;
    if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
    MR_TRY(add_name(names, &capacity, entry->d_name));
  }
}

static int by_bytes(const void *a, const void *b) {
  return strcmp(*(char *const *)a, *(char *const *)b);
}

mr_status mr_folder_list(const char *path, mr_names *names) {
  *names = (mr_names){NULL, 0};
  DIR *folder = mr_call_fails() ? NULL : opendir(path);
  if (!folder) return mr_call_error("list", path);
  mr_status status = add_all(folder, path, names);
  (void)closedir(folder);
  if (status != MR_OK) {
    mr_names_release(names);
    return status;
  }
  if (names->count > 1) qsort(names->items, (size_t)names->count, sizeof *names->items, by_bytes);
  return MR_OK;
}

void mr_names_release(mr_names *names) {
  for (int64_t i = 0; i < names->count; i++) mr_memory_release(names->items[i]);
  mr_memory_release(names->items);
  *names = (mr_names){NULL, 0};
}

/* Removing below a root */

/* MR_OK when every component of `name` is a name of its own. */
static mr_status check_below(const char *root, const char *name) {
  const char *first = name;
  int good = *name != '\0';
  while (good) {
    const char *end = strchrnul(first, '/');
    size_t length = (size_t)(end - first);
    good = length > 0 && !(length == 1 && first[0] == '.') &&
           !(length == 2 && first[0] == '.' && first[1] == '.');
    if (*end == '\0') break;
    first = end + 1;
  }
  if (good) return MR_OK;
  return mr_fail(MR_ERROR_ARGUMENT, "'%s' is not removed: it does not lie below %s", name, root);
}

/* Opens the folder that holds the last component of `name` and points *last to that component;
 * `name` is cut up on the way. */
static mr_status open_holder(const char *root, char *name, int *holder, char **last) {
  *holder = MR_CALL(open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (*holder < 0) return mr_call_error("open folder", root);
  *last = name;
  for (char *slash; (slash = strchr(*last, '/')) != NULL; *last = slash + 1) {
    *slash = '\0';
    int next = MR_CALL(openat(*holder, *last, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    mr_status status =
        next < 0 ? mr_call_error("open folder without following links", *last) : MR_OK;
    (void)close(*holder);
    *holder = next;
    if (status != MR_OK) return status;
  }
  return MR_OK;
}

mr_status mr_folder_remove(const char *root, const char *name) {
  MR_TRY(check_below(root, name));
  char *copy = NULL, *last = NULL;
  int holder = -1;
  MR_TRY(mr_memory_copy_string(name, &copy));
  mr_status status = open_holder(root, copy, &holder, &last);
  if (status == MR_OK) status = mr_tree_remove(holder, last);
  if (status != MR_OK) (void)mr_fail_within(status, "%s/%s", root, name);
  if (holder >= 0) (void)close(holder);
  mr_memory_release(copy);
  return status;
}
