/* Paths as text. Results are blocks of mr_memory; trailing slashes of an input are ignored. */
#ifndef MR_BASE_PATH_H
#define MR_BASE_PATH_H

#include "base/status.h"

/* The folder that holds the last component: "outputs" of "outputs/x/", "." of "x".
 * Errors: MR_ERROR_MEMORY, and MR_ERROR_ARGUMENT for a path without a last component of its own
 * ("", "/", "..", "."). */
mr_status mr_path_parent(const char *path, char **parent);

/* The hidden neighbour "parent/.name" + suffix. Errors: as mr_path_parent. */
mr_status mr_path_beside(const char *path, const char *suffix, char **beside);

/* The hidden neighbour under which this process writes what will be at `path`:
 * "parent/.name.partial-PID", followed by "-ATTEMPT" when attempt > 0. Errors: as mr_path_parent.
 */
mr_status mr_path_temporary(const char *path, int attempt, char **temporary);

#endif
