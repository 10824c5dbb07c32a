#define _GNU_SOURCE
#include "device/library.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char here; /* lies in the file that this code was loaded from */

/* Puts the folder of the file at `path` in its place; 0 when that cannot be told. */
static int folder_of(char path[PATH_MAX]) {
  char *slash = strrchr(path, '/');
  if (slash) *slash = '\0';
  return slash != NULL;
}

static int exists_in(const char *folder, const char *below, const char *file, char path[PATH_MAX]) {
  int length = snprintf(path, PATH_MAX, "%s%s/%s", folder, below, file);
  return length > 0 && length < PATH_MAX && access(path, R_OK) == 0;
}

/* Beside the file that this code was loaded from: the module, in plain Lua. */
static int find_beside_module(const char *file, char path[PATH_MAX]) {
  Dl_info info;
  char folder[PATH_MAX];
  if (!dladdr(&here, &info) || !info.dli_fname || !realpath(info.dli_fname, folder)) return 0;
  return folder_of(folder) && exists_in(folder, "", file, path);
}

static int find_beside_program(const char *file, char path[PATH_MAX]) {
  char folder[PATH_MAX];
  ssize_t length = readlink("/proc/self/exe", folder, sizeof folder - 1);
  if (length <= 0) return 0;
  folder[length] = '\0';
  return folder_of(folder) && exists_in(folder, "/../lib/marea", file, path);
}

static mr_status find_file(const mr_library *library, char path[PATH_MAX]) {
  const char *named = getenv(library->variable);
  if (named && *named) {
    (void)snprintf(path, PATH_MAX, "%s", named);
    return MR_OK;
  }
  if (find_beside_program(library->file, path) || find_beside_module(library->file, path))
    return MR_OK;
  return mr_fail(MR_ERROR_ENVIRONMENT, "%s", library->missing);
}

mr_status mr_library_open(const mr_library *library, const void **record) {
  char path[PATH_MAX];
  *record = NULL;
  MR_TRY(find_file(library, path));
  void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!handle)
    return mr_fail(MR_ERROR_ENVIRONMENT, "%s cannot be loaded: %s", library->parts, dlerror());
  const void *(*entry)(void) = NULL;
  void *symbol = dlsym(handle, library->entry);
  memcpy(&entry, &symbol, sizeof entry); /* ISO C has no cast from an object to a function */
  const void *opened = entry ? entry() : NULL;
  if (!opened || *(const int *)opened != library->version)
    return mr_fail(MR_ERROR_ENVIRONMENT,
                   "%s belongs to another version of marea than this program: build both anew",
                   path);
  *record = opened;
  return MR_OK;
}
