/* Libraries of marea's own that are opened with dlopen when they are needed, and not before. Each
 * exports one function that returns its record, whose first member is an int: the version of the
 * header that it was built with. */
#ifndef MR_DEVICE_LIBRARY_H
#define MR_DEVICE_LIBRARY_H

#include "base/status.h"

typedef struct mr_library {
  const char *file;     /* "libmarea_cuda.so" */
  const char *variable; /* of the environment, which may name another file */
  const char *parts;    /* what it needs: "CUDA's libraries" */
  const char *missing;  /* the message where there is no such file */
  const char *entry;    /* the function */
  int version;
} mr_library;

/* Opens the library, for the life of the process, and sets *record. It is the file that the
 * variable names, else the one in ../lib/marea seen from the program, or beside the module
 * marea/core.so. Errors: MR_ERROR_ENVIRONMENT. */
mr_status mr_library_open(const mr_library *library, const void **record);

#endif
