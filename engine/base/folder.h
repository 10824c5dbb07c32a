/* Folders: made, listed, removed, and staged so that one appears complete or not at all.
 *
 * Errors are MR_ERROR_IO with the path and the system's reason unless said otherwise. */
#ifndef MR_BASE_FOLDER_H
#define MR_BASE_FOLDER_H

#include <stdint.h>

#include "base/status.h"

/* Makes the folder with its parents; one that exists is no error. */
mr_status mr_folder_make(const char *path);

/* 1 when a folder of that name exists (links are followed), else 0. */
int mr_folder_exists(const char *path);

/* The names in a folder, in the order of their bytes, "." and ".." left out. */
typedef struct mr_names {
  char **items;
  int64_t count;
} mr_names;
mr_status mr_folder_list(const char *path, mr_names *names);
/* An emptied list may be released again. */
void mr_names_release(mr_names *names);

/* Removes `name`, a path below the folder `root`, with all that it holds. Links on the way are
 * refused; links found inside, or `name` itself, are removed and never followed. A name that is
 * empty, absolute or has a component "." or ".." is MR_ERROR_ARGUMENT. */
mr_status mr_folder_remove(const char *root, const char *name);

/* A folder that is being written beside its final name, as ".NAME.partial-PID". Files may be put
 * into it by any means, by other processes too. */
typedef struct mr_staging mr_staging;

/* Makes the staging folder, and the parents of `path` where they are missing. */
mr_status mr_folder_begin(const char *path, mr_staging **staging);

/* Where to write; owned by the staging. */
const char *mr_folder_staged(const mr_staging *staging);

/* Syncs every file and folder inside, gives the folder its final name and syncs the parent. A
 * folder that has this name is exchanged with it in one step and then removed; file systems that
 * cannot exchange see the old one moved aside first. When this fails, the old folder is in place,
 * or, past the exchange, the new one. Once only. */
mr_status mr_folder_commit(mr_staging *staging);

/* Removes what was not committed and ends the staging. NULL does nothing. */
void mr_folder_discard(mr_staging *staging);

#endif
