/* NCCL in a world: opened, given to groups, watched, closed. */
#define _GNU_SOURCE 1
#include "comm/nccl.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/memory.h"
#include "comm/nccl_parts.h"
#include "device/library.h"

static const double SECONDS = 600, WATCH_SECONDS = 0.01;

mr_status mr_nccl_fail(const mr_nccl *nccl, int error, const char *what) {
  enum { REMOTE = MR_NCCL_ERRORS + 6 }; /* ncclRemoteError: another rank, or the way to it */
  return mr_fail(error == REMOTE ? MR_ERROR_RANKS : MR_ERROR_ENVIRONMENT, "NCCL cannot %s: %s",
                 what, nccl->library->error_text(error));
}

static mr_status check(const mr_nccl *nccl, int error, const char *what) {
  return error == 0 || error == MR_NCCL_BUSY ? MR_OK : mr_nccl_fail(nccl, error, what);
}

/* ---- channels ---- */

static mr_status open_channel(const mr_nccl *nccl, mr_channel *channel, int rank, int size) {
  MR_TRY(check(nccl, nccl->library->open(nccl->ordinal, channel->id, rank, size, &channel->nccl),
               "connect the ranks"));
  channel->step = MR_CHANNEL_OPEN;
  return MR_OK;
}

static mr_status look_whether_open(const mr_nccl *nccl, mr_channel *channel) {
  int error = nccl->library->state(channel->nccl);
  if (error == 0) channel->step = MR_CHANNEL_READY;
  return check(nccl, error, "connect the ranks");
}

/* The sender makes the id. */
static mr_status pass_id(const mr_nccl *nccl, mr_group *group, mr_channel *channel, int peer,
                         int sending) {
  const mr_transport *transport = group->world->transport;
  if (sending)
    MR_TRY(check(nccl, nccl->library->new_id(channel->id), "begin to connect two ranks"));
  channel->step = MR_CHANNEL_ID;
  return transport->pass(group, peer, sending, channel->id, MR_NCCL_ID_BYTES, &channel->request);
}

mr_status mr_channel_connect(mr_group *group, mr_channel *channel, int peer, int sending) {
  const mr_nccl *nccl = group->world->nccl;
  if (channel->step == MR_CHANNEL_NONE) MR_TRY(pass_id(nccl, group, channel, peer, sending));
  if (channel->step == MR_CHANNEL_ID) {
    int passed = 0;
    MR_TRY(group->world->transport->exchanged(&channel->request, &passed));
    if (!passed) return MR_OK;
    MR_TRY(open_channel(nccl, channel, sending ? 0 : 1, 2));
  }
  return channel->step == MR_CHANNEL_OPEN ? look_whether_open(nccl, channel) : MR_OK;
}

static void nap(void) {
  struct timespec moment = {0, 200000};
  (void)nanosleep(&moment, NULL);
}

/* Whether a wait within the set-up or the end may go on. */
static mr_status look_at_others(const mr_world *world, double began, const char *what) {
  if (world->presence) MR_TRY(mr_presence_check(world->presence));
  if (mr_clock_seconds() - began <= world->nccl->seconds) return MR_OK;
  return mr_fail(MR_ERROR_RANKS, "NCCL did not %s within %g seconds", what, world->nccl->seconds);
}

/* ---- groups ---- */

static mr_status new_channels(mr_nccl *nccl, int size, mr_channels **channels) {
  void *block = NULL, *lanes = NULL;
  *channels = NULL;
  MR_TRY(mr_memory_allocate((int64_t)sizeof(mr_channels), &block));
  mr_status status =
      mr_memory_allocate_array(INT64_C(2) * size, (int64_t)sizeof(mr_channel), &lanes);
  if (status != MR_OK) {
    mr_memory_release(block);
    return status;
  }
  mr_channels *made = block;
  made->size = size;
  made->sends = lanes;
  made->receives = made->sends + size;
  made->next = nccl->groups;
  nccl->groups = made;
  *channels = made;
  return MR_OK;
}

/* Member 0's id to all, or its failure. */
static mr_status spread_id(const mr_nccl *nccl, mr_group *group, mr_channel *channel) {
  struct {
    char id[MR_NCCL_ID_BYTES];
    char good;
  } word = {{0}, 0};
  mr_status status = MR_OK;
  if (group->rank == 0) {
    status = check(nccl, nccl->library->new_id(word.id), "begin to connect the ranks");
    word.good = status == MR_OK;
  }
  MR_TRY(group->world->transport->spread(group, &word, (int)sizeof word));
  if (status != MR_OK) return status;
  if (!word.good)
    return mr_fail(MR_ERROR_ENVIRONMENT, "NCCL cannot begin to connect the ranks: see rank %d",
                   group->members[0]);
  memcpy(channel->id, word.id, sizeof channel->id);
  return MR_OK;
}

mr_status mr_nccl_join(mr_group *group) {
  mr_nccl *nccl = group->world->nccl;
  if (!nccl || (group->size == 1 && !nccl->alone)) return MR_OK;
  MR_TRY(new_channels(nccl, group->size, &group->channels));
  mr_channel *channel = &group->channels->collectives;
  MR_TRY(spread_id(nccl, group, channel));
  MR_TRY(open_channel(nccl, channel, group->rank, group->size));
  for (double began = mr_clock_seconds(); channel->step != MR_CHANNEL_READY; nap()) {
    MR_TRY(look_whether_open(nccl, channel));
    MR_TRY(look_at_others(group->world, began, "connect the ranks"));
  }
  return MR_OK;
}

/* ---- the world ---- */

typedef enum policy { OFF, AUTO, ALWAYS } policy;

static mr_status read_policy(policy *chosen) {
  const char *text = getenv("MAREA_NCCL");
  *chosen = AUTO;
  if (!text || !*text || strcmp(text, "auto") == 0) return MR_OK;
  *chosen = strcmp(text, "off") == 0 ? OFF : ALWAYS;
  if (*chosen == OFF || strcmp(text, "always") == 0) return MR_OK;
  return mr_fail(MR_ERROR_ENVIRONMENT, "MAREA_NCCL must be auto, off or always, not '%s'", text);
}

static mr_status read_seconds(double *seconds) {
  const char *text = getenv("MAREA_NCCL_SECONDS");
  char *end = NULL;
  *seconds = SECONDS;
  if (!text || !*text) return MR_OK;
  *seconds = strtod(text, &end);
  if (*end == '\0' && *seconds > 0) return MR_OK;
  return mr_fail(MR_ERROR_ENVIRONMENT, "MAREA_NCCL_SECONDS must be a number above 0, not '%s'",
                 text);
}

/* Sums within switches have no order that NVIDIA documents; ours must have one. */
static void keep_order(void) { (void)setenv("NCCL_NVLS_ENABLE", "0", 0); }

static mr_status find_library(const mr_nccl_library **library) {
  static const mr_library nccl = {
      .file = "libmarea_nccl.so",
      .variable = "MAREA_NCCL_LIBRARY",
      .parts = "NCCL's libraries",
      .missing =
          "this marea was built without NCCL: there is no libmarea_nccl.so in lib/marea "
          "beside it; it is built where a CUDA toolkit with NCCL is found",
      .entry = MR_NCCL_ENTRY,
      .version = MR_NCCL_VERSION,
  };
  static const void *found;
  keep_order();
  mr_status status = found ? MR_OK : mr_library_open(&nccl, &found);
  *library = found;
  return status;
}

static mr_status new_nccl(mr_world *world, const mr_nccl_library *library, mr_device *device,
                          int alone) {
  void *block = NULL;
  MR_TRY(mr_memory_allocate((int64_t)sizeof(mr_nccl), &block));
  mr_nccl *made = block;
  *made = (mr_nccl){.library = library, .device = device, .alone = alone};
  made->ordinal = device->ordinal;
  world->nccl = made;
  device->watch = (mr_device_watch){world, mr_world_look};
  MR_TRY(read_seconds(&made->seconds));
  return mr_nccl_join(world->group);
}

/* 1 when every rank wants NCCL and has its library; else `why` says what this rank lacks. */
static mr_status agree(mr_group *group, int wanted, const mr_nccl_library **library, int *all,
                       char why[MR_NCCL_WHY]) {
  mr_status status = wanted ? find_library(library) : MR_OK;
  why[0] = '\0';
  if (status != MR_OK) (void)snprintf(why, MR_NCCL_WHY, "%s", mr_status_message());
  *all = wanted && status == MR_OK;
  MR_TRY(group->world->transport->lowest(group, all));
  if (*all || !wanted || why[0]) return MR_OK;
  (void)snprintf(why, MR_NCCL_WHY, "another rank cannot use NCCL");
  return MR_OK;
}

mr_status mr_comm_use_nccl(mr_group *group, mr_device *device, const char **name,
                           char why[MR_NCCL_WHY]) {
  mr_world *world = group->world;
  const mr_nccl_library *library = NULL;
  policy chosen = OFF;
  int all = 0;
  *name = NULL;
  why[0] = '\0';
  MR_TRY(read_policy(&chosen));
  int wanted = chosen == ALWAYS || (chosen == AUTO && group->size > 1);
  if (!world->nccl) {
    MR_TRY(agree(world->group, wanted, &library, &all, why));
    if (!all || !library) return MR_OK;
    mr_status status = new_nccl(world, library, device, chosen == ALWAYS);
    if (status != MR_OK) {
      mr_nccl_abort(world);
      mr_nccl_release(world);
      return status;
    }
  }
  *name = world->nccl->library->name;
  return MR_OK;
}

const char *mr_group_carrier(const mr_group *group, const mr_device *device) {
  const mr_nccl *nccl = group->world->nccl;
  return nccl && group->channels && nccl->device == device ? nccl->library->name : NULL;
}

mr_device *mr_nccl_device(const mr_world *world) { return world->nccl->device; }

/* ---- watching ---- */

static mr_status look_at_channel(const mr_nccl *nccl, const mr_channel *channel) {
  if (channel->under_way == 0 || !channel->nccl) return MR_OK;
  return check(nccl, nccl->library->state(channel->nccl), "go on");
}

static mr_status look_at_channels(const mr_nccl *nccl) {
  for (const mr_channels *g = nccl->groups; g; g = g->next) {
    MR_TRY(look_at_channel(nccl, &g->collectives));
    for (int m = 0; m < g->size; m++) {
      MR_TRY(look_at_channel(nccl, &g->sends[m]));
      MR_TRY(look_at_channel(nccl, &g->receives[m]));
    }
  }
  return MR_OK;
}

static mr_status look_at_moves(mr_nccl *nccl, double now) {
  for (mr_move **at = &nccl->moves; *at;) {
    mr_move *move = *at;
    int error = nccl->library->passed(move->done);
    if (error == MR_NCCL_BUSY) {
      if (now - move->since > nccl->seconds)
        return mr_fail(MR_ERROR_RANKS, "NCCL has not ended %s within %g seconds", move->text,
                       nccl->seconds);
      at = &move->next;
      continue;
    }
    *at = move->next;
    mr_move_release(nccl, move);
    MR_TRY(check(nccl, error, "go on"));
  }
  return MR_OK;
}

mr_status mr_nccl_watch(mr_world *world) {
  mr_nccl *nccl = world->nccl;
  if (!nccl || !nccl->groups) return MR_OK;
  double now = mr_clock_seconds();
  if (now < nccl->next_watch) return MR_OK;
  nccl->next_watch = now + WATCH_SECONDS;
  MR_TRY(look_at_channels(nccl));
  return look_at_moves(nccl, now);
}

int mr_nccl_is_busy(const mr_world *world) { return world->nccl && world->nccl->moves; }

/* ---- the end ---- */

typedef void (*channel_function)(const mr_nccl *nccl, mr_channel *channel, mr_status *status);

static mr_status for_each(const mr_nccl *nccl, channel_function act) {
  mr_status status = MR_OK;
  for (mr_channels *g = nccl->groups; g; g = g->next) {
    act(nccl, &g->collectives, &status);
    for (int m = 0; m < g->size; m++) {
      act(nccl, &g->sends[m], &status);
      act(nccl, &g->receives[m], &status);
    }
  }
  return status;
}

static void abort_channel(const mr_nccl *nccl, mr_channel *channel, mr_status *status) {
  (void)status;
  if (channel->nccl) nccl->library->abort(channel->nccl);
  channel->nccl = NULL;
}

static void begin_end(const mr_nccl *nccl, mr_channel *channel, mr_status *status) {
  if (*status == MR_OK && channel->nccl)
    *status = check(nccl, nccl->library->end(channel->nccl), "end");
}

static void release_moves(mr_nccl *nccl) {
  while (nccl->moves) {
    mr_move *move = nccl->moves;
    nccl->moves = move->next;
    mr_move_release(nccl, move);
  }
}

void mr_nccl_abort(mr_world *world) {
  mr_nccl *nccl = world->nccl;
  if (!nccl) return;
  (void)for_each(nccl, abort_channel);
  release_moves(nccl);
}

void mr_nccl_release(mr_world *world) {
  mr_nccl *nccl = world->nccl;
  if (!nccl) return;
  while (nccl->groups) {
    mr_channels *g = nccl->groups;
    nccl->groups = g->next;
    mr_memory_release(g->sends);
    mr_memory_release(g);
  }
  if (nccl->device) nccl->device->watch = (mr_device_watch){0};
  world->nccl = NULL;
  mr_memory_release(nccl);
}

static mr_status close_channel(mr_world *world, mr_channel *channel, double began) {
  const mr_nccl *nccl = world->nccl;
  for (int error = MR_NCCL_BUSY; channel->nccl; nap()) {
    error = nccl->library->state(channel->nccl);
    if (error == 0) {
      nccl->library->close(channel->nccl);
      channel->nccl = NULL;
      return MR_OK;
    }
    MR_TRY(check(nccl, error, "end"));
    MR_TRY(look_at_others(world, began, "end"));
  }
  return MR_OK;
}

static mr_status close_channels(mr_world *world) {
  double began = mr_clock_seconds();
  MR_TRY(for_each(world->nccl, begin_end));
  for (mr_channels *g = world->nccl->groups; g; g = g->next) {
    MR_TRY(close_channel(world, &g->collectives, began));
    for (int m = 0; m < g->size; m++) {
      MR_TRY(close_channel(world, &g->sends[m], began));
      MR_TRY(close_channel(world, &g->receives[m], began));
    }
  }
  return MR_OK;
}

mr_status mr_nccl_close(mr_world *world) {
  mr_nccl *nccl = world->nccl;
  if (!nccl) return MR_OK;
  for (; nccl->moves; nap()) MR_TRY(mr_nccl_watch(world));
  MR_TRY(close_channels(world));
  mr_nccl_release(world);
  return MR_OK;
}
