#define _GNU_SOURCE
#include "device/cuda_find.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FILE_NAME "libmarea_cuda.so"

static const mr_cuda_library *found;

/* Puts the folder of the file at `path` in its place; 0 when that cannot be told. */
static int folder_of(char path[PATH_MAX]) {
  char *slash = strrchr(path, '/');
  if (slash) *slash = '\0';
  return slash != NULL;
}

static int exists_in(const char *folder, const char *below, char path[PATH_MAX]) {
  int length = snprintf(path, PATH_MAX, "%s%s/" FILE_NAME, folder, below);
  return length > 0 && length < PATH_MAX && access(path, R_OK) == 0;
}

/* Beside the file that this code was loaded from: the module, in plain Lua. */
static int find_beside_module(char path[PATH_MAX]) {
  Dl_info info;
  char folder[PATH_MAX];
  if (!dladdr(&found, &info) || !info.dli_fname || !realpath(info.dli_fname, folder)) return 0;
  return folder_of(folder) && exists_in(folder, "", path);
}

static int find_beside_program(char path[PATH_MAX]) {
  char folder[PATH_MAX];
  ssize_t length = readlink("/proc/self/exe", folder, sizeof folder - 1);
  if (length <= 0) return 0;
  folder[length] = '\0';
  return folder_of(folder) && exists_in(folder, "/../lib/marea", path);
}

static mr_status find_file(char path[PATH_MAX]) {
  const char *named = getenv("MAREA_CUDA_LIBRARY");
  if (named && *named) {
    (void)snprintf(path, PATH_MAX, "%s", named);
    return MR_OK;
  }
  if (find_beside_program(path) || find_beside_module(path)) return MR_OK;
  return mr_fail(MR_ERROR_ENVIRONMENT,
                 "this marea was built without CUDA: there is no " FILE_NAME
                 " in lib/marea beside it; it is built where a CUDA toolkit (nvcc) is found");
}

static mr_status open_file(const char *path, const mr_cuda_library **library) {
  void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!handle)
    return mr_fail(MR_ERROR_ENVIRONMENT, "CUDA's libraries cannot be loaded: %s", dlerror());
  mr_cuda_entry entry = NULL;
  void *symbol = dlsym(handle, MR_CUDA_ENTRY);
  memcpy(&entry, &symbol, sizeof entry); /* ISO C has no cast from an object to a function */
  const mr_cuda_library *opened = entry ? entry() : NULL;
  if (!opened || opened->version != MR_CUDA_VERSION)
    return mr_fail(MR_ERROR_ENVIRONMENT,
                   "%s belongs to another version of marea than this program: build both anew",
                   path);
  *library = opened;
  return MR_OK;
}

mr_status mr_cuda_find(const mr_cuda_library **library) {
  char path[PATH_MAX];
  *library = found;
  if (found) return MR_OK;
  MR_TRY(find_file(path));
  MR_TRY(open_file(path, &found));
  *library = found;
  return MR_OK;
}
