/* Walks over all that a folder holds; links are never followed. For the files of this floor. */
#ifndef MR_BASE_TREE_H
#define MR_BASE_TREE_H

#include "base/status.h"

/* Removes the file, link or folder `name` of the open folder `holder`, with all that it holds.
 * Errors: MR_ERROR_IO naming the entry. */
mr_status mr_tree_remove(int holder, const char *name);

/* Syncs every file and folder below the folder `path`, then the folder. */
mr_status mr_tree_sync(const char *path);

#endif
