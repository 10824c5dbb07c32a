#include "train/shared.h"

#include <stddef.h>

static void close_window(void *owner, void *memory) {
  (void)memory;
  mr_window_close(owner);
}

static mr_status find_window(mr_storage *storage, mr_group *group, const char *line,
                             mr_window **window, char why[MR_WINDOW_WHY]) {
  *window = mr_window_find(group, storage->memory, storage->bytes);
  if (*window || storage->bytes == 0) return MR_OK;
  MR_TRY(mr_window_open(group, storage->device, storage->bytes, line, window, why));
  if (!*window) return MR_OK;
  mr_status status = mr_storage_move(storage, mr_window_part(*window), close_window, *window);
  if (status != MR_OK) mr_window_close(*window);
  return status;
}

mr_status mr_unit_share_gradients(mr_unit *unit, mr_group *group, const char *line, mr_way *way) {
  mr_window *window = NULL;
  *way = (mr_way){mr_group_size(group) > 1 ? "MPI" : "one process", ""};
  if (mr_group_carrier(group, unit->device)) way->name = "NCCL";
  if (mr_group_size(group) == 1 || !unit->device->host_memory) return MR_OK;
  MR_TRY(find_window(unit->gradients->storage, group, line, &window, way->why));
  if (!window) return MR_OK;
  way->name =
      mr_window_crosses_hosts(window) ? "shared windows, MPI between hosts" : "shared window";
  return MR_OK;
}
