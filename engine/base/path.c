#define _GNU_SOURCE 1
#include "base/path.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"

/* Where the last component of a path lies: path[first, end). */
typedef struct component {
  size_t first;
  size_t end;
} component;

static mr_status last_component(const char *path, component *last) {
  size_t end = strlen(path);
  while (end > 0 && path[end - 1] == '/') end--;
  size_t first = end;
  while (first > 0 && path[first - 1] != '/') first--;
  size_t length = end - first;
  int dots = (length == 1 && path[first] == '.') ||
             (length == 2 && path[first] == '.' && path[first + 1] == '.');
  if (length == 0 || dots)
    return mr_fail(MR_ERROR_ARGUMENT, "path '%s' does not end in a name", path);
  *last = (component){first, end};
  return MR_OK;
}

static mr_status allocate_text(size_t bytes, char **text) {
  void *block = NULL;
  MR_TRY(mr_memory_allocate_raw((int64_t)bytes, &block));
  *text = block;
  return MR_OK;
}

mr_status mr_path_parent(const char *path, char **parent) {
  component last;
  *parent = NULL;
  MR_TRY(last_component(path, &last));
  size_t end = last.first;
  if (end == 0) return mr_memory_copy_string(".", parent);
  while (end > 1 && path[end - 1] == '/') end--;
  MR_TRY(allocate_text(end + 1, parent));
  memcpy(*parent, path, end);
  (*parent)[end] = '\0';
  return MR_OK;
}

mr_status mr_path_beside(const char *path, const char *suffix, char **beside) {
  component last;
  *beside = NULL;
  MR_TRY(last_component(path, &last));
  size_t bytes = last.end + strlen(suffix) + 2;
  MR_TRY(allocate_text(bytes, beside));
  (void)snprintf(*beside, bytes, "%.*s.%.*s%s", (int)last.first, path, (int)(last.end - last.first),
                 path + last.first, suffix);
  return MR_OK;
}

mr_status mr_path_temporary(const char *path, int attempt, char **temporary) {
  char suffix[64];
  int pid = (int)getpid();
  if (attempt == 0)
    (void)snprintf(suffix, sizeof suffix, ".partial-%d", pid);
  else
    (void)snprintf(suffix, sizeof suffix, ".partial-%d-%d", pid, attempt);
  return mr_path_beside(path, suffix, temporary);
}
