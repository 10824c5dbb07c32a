#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "comm/board.h"
#include "comm/nccl.h"
#include "comm/transport.h"

mr_status mr_group_new(mr_world *world, const char *name, mr_group **group) {
  *group = NULL;
  void *block = NULL;
  MR_TRY(mr_memory_allocate((int64_t)sizeof(mr_group), &block));
  mr_group *made = block;
  made->references = 1;
  made->world = world;
  mr_status status = mr_memory_copy_string(name, &made->name);
  if (status != MR_OK) {
    mr_memory_release(made);
    return status;
  }
  world->groups++;
  *group = made;
  return MR_OK;
}

static void count_local(mr_group *group) {
  const int *hosts = group->world->hosts;
  int here = hosts[group->members[group->rank]];
  for (int m = 0; m < group->size; m++) {
    int local = hosts[group->members[m]] == here;
    group->local_size += local;
    group->local_rank += local && m < group->rank;
  }
}

mr_status mr_group_finish(mr_group *group) {
  void *block = NULL;
  MR_TRY(mr_memory_allocate_array(group->size, (int64_t)sizeof(mr_lane), &block));
  group->sends = block;
  MR_TRY(mr_memory_allocate_array(group->size, (int64_t)sizeof(mr_lane), &block));
  group->receives = block;
  count_local(group);
  return group->size > 1 ? mr_board_open(group, &group->board) : MR_OK;
}

/* A world goes with its last group. */
static void release_world(mr_world *world) {
  if (--world->groups > 0) return;
  if (world->opened) *world->opened = NULL;
  mr_nccl_release(world);
  mr_presence_release(world->presence);
  mr_memory_release(world->hosts);
  mr_memory_release(world->broken_message);
  mr_memory_release(world);
}

mr_group *mr_group_retain(mr_group *group) {
  group->references++;
  return group;
}

void mr_group_release(mr_group *group) {
  if (!group || --group->references > 0) return;
  mr_world *world = group->world;
  mr_board_release(group->board);
  mr_group_release(group->local);
  mr_group_release(group->across);
  mr_memory_release(group->sends);
  mr_memory_release(group->receives);
  mr_memory_release(group->members);
  mr_memory_release(group->name);
  mr_memory_release(group);
  release_world(world);
}

int mr_group_rank(const mr_group *group) { return group->rank; }
int mr_group_size(const mr_group *group) { return group->size; }
int mr_group_local_rank(const mr_group *group) { return group->local_rank; }
int mr_group_local_size(const mr_group *group) { return group->local_size; }
int mr_group_world_rank(const mr_group *group, int member) { return group->members[member]; }
const char *mr_group_name(const mr_group *group) { return group->name; }
mr_ledger mr_ledger_read(const mr_group *group) { return group->ledger; }

const char *mr_comm_board_name(const mr_group *group) {
  return group->board ? group->board->name : group->world->transport->name;
}
