/* The world: opened once, closed once. */
#define _GNU_SOURCE 1
#include "comm/comm.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/memory.h"
#include "comm/board.h"
#include "comm/nccl.h"
#include "comm/pause.h"
#include "comm/transport.h"

static const double LEAVE_SECONDS = 2.0;

static mr_world *current;
static int was_closed, has_left, left_code;

/* What a launcher says about the number of ranks: > 1 for several, 0 for "it does not say". */
static int launched_ranks(void) {
  static const char *const names[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    const char *value = getenv(names[i]);
    if (value) return atoi(value);
  }
  return getenv("PMIX_RANK") ? 0 : 1;
}

static mr_status open_single(mr_world *world) {
  void *block = NULL;
  world->transport = &mr_transport_single;
  MR_TRY(mr_memory_allocate((int64_t)sizeof(int), &block));
  world->hosts = block;
  MR_TRY(mr_memory_allocate((int64_t)sizeof(int), &block));
  world->group->members = block;
  world->group->size = 1;
  return MR_OK;
}

static mr_status open_world(mr_world *world) {
  int ranks = launched_ranks();
  if (ranks == 1) {
    MR_TRY(open_single(world));
  } else {
    MR_TRY(mr_mpi_open(world));
    if (ranks > 1 && world->group->size != ranks) {
      return mr_fail(MR_ERROR_ENVIRONMENT,
                     "started as one of %d ranks, but MPI sees %d: the launcher belongs to "
                     "another MPI than the one marea was built with",
                     ranks, world->group->size);
    }
  }
  MR_TRY(mr_group_finish(world->group));
  world->crowded = mr_pause_is_crowded(world->group->local_size);
  if (!world->group->board) return MR_OK;
  int shared = mr_board_wants_shared(world->group);
  MR_TRY(world->transport->lowest(world->group, &shared));
  return shared ? mr_presence_open(world->group, &world->presence) : MR_OK;
}

mr_status mr_comm_open(mr_group **world) {
  *world = NULL;
  if (was_closed) return mr_fail(MR_ERROR_ARGUMENT, "the world was closed and cannot open again");
  if (current) {
    *world = mr_group_retain(current->group);
    return MR_OK;
  }
  void *block = NULL;
  MR_TRY(mr_memory_allocate((int64_t)sizeof(mr_world), &block));
  mr_world *made = block;
  made->last = &made->first;
  mr_status status = mr_group_new(made, "the world", &made->group);
  if (status != MR_OK) {
    mr_memory_release(made);
    return status;
  }
  status = open_world(made);
  if (status != MR_OK) {
    mr_group_release(made->group);
    return status;
  }
  current = made;
  made->opened = &current;
  *world = made->group;
  return MR_OK;
}

mr_group *mr_comm_world(void) {
  return current && !was_closed && !has_left ? current->group : NULL;
}

/* Completes every pending operation; the first failure counts. */
static mr_status drain(mr_world *world) {
  mr_status status = MR_OK;
  while (world->first && status == MR_OK) {
    mr_handle *handle = world->first;
    handle->references++;
    status = mr_handle_wait(handle);
    mr_handle_release(handle);
  }
  return status;
}

mr_status mr_comm_close(mr_group *group) {
  mr_world *world = group->world;
  mr_record record = {.kind = MR_CLOSE, .dtype = -1, .reduction = -1, .peer = -1};
  mr_handle *handle = NULL;
  MR_TRY(drain(world));
  MR_TRY(mr_handle_post(world->group, &record, NULL, NULL, NULL, &handle));
  if (world->presence) mr_presence_set_closing(world->presence);
  mr_status status = mr_handle_wait(handle);
  mr_handle_release(handle);
  if (status == MR_OK) status = mr_nccl_close(world);
  if (status != MR_OK) return status;
  if (world->presence) mr_presence_set_closed(world->presence);
  (void)mr_fail(MR_ERROR_ARGUMENT, "the world is closed: its ranks have parted");
  mr_world_break(world, MR_ERROR_ARGUMENT);
  was_closed = 1;
  return world->transport->close(world);
}

void mr_comm_leave(mr_group *group, int exit_code, const char *message) {
  mr_world *world = group->world;
  char kept[1024]; /* `message` may be the recorded one, which the next failure replaces */
  if (has_left) return;
  has_left = 1;
  left_code = exit_code;
  (void)snprintf(kept, sizeof kept, "%s", message);
  (void)mr_fail(MR_ERROR_ARGUMENT, "this rank has left: %s", kept);
  mr_world_break(world, MR_ERROR_ARGUMENT);
  if (world->presence) mr_presence_leave(world->presence, exit_code, kept, LEAVE_SECONDS);
}

void mr_comm_stop(mr_group *group) {
  const mr_world *world = group->world;
  if (!has_left || was_closed || world->presence || !world->transport->stop) return;
  struct timespec moment = {0, 300000000};
  (void)nanosleep(&moment, NULL);
  world->transport->stop(left_code);
}

int mr_comm_left_alike(const mr_group *group) {
  const mr_presence *presence = group->world->presence;
  return presence ? mr_presence_left_alike(presence) : mr_group_size(group) == 1;
}

int mr_comm_peer_exit_code(const mr_group *group) {
  const mr_presence *presence = group->world->presence;
  int code = presence ? mr_presence_exit_code(presence) : has_left ? left_code : -1;
  return code < 0 ? mr_status_exit_code(MR_ERROR_PEER) : code;
}
