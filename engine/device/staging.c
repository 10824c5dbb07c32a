#include "device/staging.h"

#include <stddef.h>
#include <string.h>

#include "base/memory.h"
#include "device/cuda_wait.h"

enum { LEAST = 1 << 16, MOST = 1 << 22, PIECES = 1024 };
static const int64_t MOST_BYTES = (int64_t)256 << 20;

typedef struct piece {
  void *memory;
  int64_t bytes;
  int busy; /* a copy from it was enqueued, and its mark not seen passed */
  mr_cuda_mark *mark;
} piece;

struct mr_staging {
  const mr_cuda_library *library;
  mr_cuda *device;
  piece piece[PIECES];
  int pieces, oldest; /* oldest: where the next wait begins */
  int64_t bytes;
  mr_device *record;
};

mr_status mr_staging_new(const mr_cuda_library *library, mr_cuda *device, mr_device *record,
                         mr_staging **staging) {
  void *block = NULL;
  *staging = NULL;
  MR_TRY(mr_memory_allocate(sizeof(mr_staging), &block));
  *staging = block;
  (*staging)->library = library;
  (*staging)->device = device;
  (*staging)->record = record;
  return MR_OK;
}

void mr_staging_release(mr_staging *s) {
  if (!s) return;
  (void)s->library->finish_sync(s->device);
  for (int i = 0; i < s->pieces; i++) {
    s->library->mark_release(s->device, s->piece[i].mark);
    s->library->release_host(s->device, s->piece[i].memory);
  }
  mr_memory_release(s);
}

static piece *find_idle(mr_staging *s, int64_t bytes) {
  for (int i = 0; i < s->pieces; i++) {
    piece *p = &s->piece[i];
    if (p->bytes < bytes) continue;
    if (p->busy && s->library->mark_passed(s->device, p->mark) == 0) p->busy = 0;
    if (!p->busy) return p;
  }
  return NULL;
}

/* A new piece; NULL where there may or can be none. */
static piece *add_piece(mr_staging *s, int64_t bytes) {
  int64_t size = LEAST;
  while (size < bytes) size *= 2;
  if (s->pieces == PIECES || (s->pieces > 0 && s->bytes + size > MOST_BYTES)) return NULL;
  piece *p = &s->piece[s->pieces];
  *p = (piece){.bytes = size};
  if (s->library->allocate_host(s->device, size, &p->memory) != 0) return NULL;
  if (s->library->mark_new(s->device, &p->mark) != 0) {
    s->library->release_host(s->device, p->memory);
    return NULL;
  }
  s->pieces++;
  s->bytes += size;
  return p;
}

/* The next piece, in turn, that is large enough, once its copy is done; NULL: there is none. */
static mr_status wait_for_piece(mr_staging *s, int64_t bytes, piece **found, int *error) {
  for (int i = 0; i < s->pieces; i++) {
    piece *p = &s->piece[(s->oldest + i) % s->pieces];
    if (p->bytes < bytes) continue;
    s->oldest = (s->oldest + i + 1) % s->pieces;
    MR_TRY(mr_cuda_wait(s->library, s->device, s->record, p->mark, error));
    p->busy = 0;
    *found = p;
    return MR_OK;
  }
  return MR_OK;
}

mr_status mr_staging_write(mr_staging *s, void *to, const void *from, int64_t bytes, int *error) {
  *error = 0;
  for (int64_t done = 0, part; done < bytes && *error == 0; done += part) {
    part = bytes - done < MOST ? bytes - done : MOST;
    piece *p = find_idle(s, part);
    if (!p) p = add_piece(s, part);
    if (!p) MR_TRY(wait_for_piece(s, part, &p, error));
    if (!p) return mr_fail(MR_ERROR_MEMORY, "no page-locked memory for a copy to the GPU");
    if (*error != 0) break;
    memcpy(p->memory, (const char *)from + done, (size_t)part);
    *error = s->library->write(s->device, (char *)to + done, p->memory, part);
    if (*error == 0) *error = s->library->mark_set(s->device, p->mark);
    p->busy = 1;
  }
  return MR_OK;
}
