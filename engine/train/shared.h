/* Where the gradients of a unit lie, and so how they are reduced over the ranks of a group. All
 * that supposes memory of a host stands here. */
#ifndef MR_TRAIN_SHARED_H
#define MR_TRAIN_SHARED_H

#include "base/status.h"
#include "comm/window.h"
#include "train/unit.h"

typedef struct mr_way {
  /* static: "one process", "shared window", "shared windows, MPI between hosts", "NCCL" or "MPI" */
  const char *name;
  char why[MR_WINDOW_WHY]; /* what was in the way of a shared window, "" for nothing */
} mr_way;

/* Moves the gradients into a window of the group, where its ranks share memory and unless they lie
 * in one: every all_reduce of them, or of a part of them, is then summed in place. Every tensor
 * over them follows, and they stay there as long as one lives. Collective over a group of several
 * ranks; `line` is the caller's place or NULL. Errors: those of mr_window_open. */
mr_status mr_unit_share_gradients(mr_unit *unit, mr_group *group, const char *line, mr_way *way);

#endif
