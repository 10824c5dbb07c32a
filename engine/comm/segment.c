/* The memory is a file without a name: member 0 makes it, the others open it through
 * /proc/PID/fd/N. So there is nothing to remove, whoever is killed when. */
#define _GNU_SOURCE 1
#include "comm/segment.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#if defined(__linux__) && !defined(MADV_COLLAPSE)
#define MADV_COLLAPSE 25 /* Linux 6.1; older kernels refuse it, and pages stay small */
#endif

enum { PATH_BYTES = 64 };

static const int64_t HUGE_PAGE = INT64_C(2) << 20;

static int64_t page_for(int64_t bytes) {
  return bytes >= HUGE_PAGE ? HUGE_PAGE : (int64_t)sysconf(_SC_PAGESIZE);
}

int64_t mr_segment_round(int64_t bytes) {
  int64_t page = page_for(bytes);
  return (bytes + page - 1) / page * page;
}

/* Each of these returns 0 or an errno. */

#ifdef __linux__

static int make_file(int64_t bytes, int *descriptor) {
  *descriptor = memfd_create("marea", MFD_CLOEXEC);
  if (*descriptor < 0) return errno;
  return ftruncate(*descriptor, (off_t)bytes) == 0 ? 0 : errno;
}

#else

static int make_file(int64_t bytes, int *descriptor) {
  (void)bytes;
  *descriptor = -1;
  return ENOSYS;
}

#endif

static int open_file(const char *path, int *descriptor) {
  *descriptor = open(path, O_RDWR | O_CLOEXEC);
  return *descriptor >= 0 ? 0 : errno;
}

/* Where a mapping may begin so that huge pages of the file are huge in it too: an address space
 * of its own is taken first, and what is too much of it given back. */
static void *find_place(int64_t bytes) {
  if (bytes < HUGE_PAGE) return NULL;
  int64_t all = bytes + HUGE_PAGE;
  char *taken = mmap(NULL, (size_t)all, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (taken == MAP_FAILED) return NULL;
  int64_t before = (HUGE_PAGE - (int64_t)((uintptr_t)taken % (uintptr_t)HUGE_PAGE)) % HUGE_PAGE;
  if (before > 0) (void)munmap(taken, (size_t)before);
  (void)munmap(taken + before + bytes, (size_t)(HUGE_PAGE - before));
  return taken + before;
}

static int attach(int descriptor, int64_t bytes, mr_segment *segment) {
  void *place = find_place(bytes);
  int flags = place ? MAP_SHARED | MAP_FIXED : MAP_SHARED;
  void *memory = mmap(place, (size_t)bytes, PROT_READ | PROT_WRITE, flags, descriptor, 0);
  if (memory == MAP_FAILED) {
    int problem = errno;
    if (place) (void)munmap(place, (size_t)bytes);
    return problem;
  }
  segment->memory = memory;
  segment->bytes = bytes;
  return 0;
}

/* Takes this member's share of the pages from the system, so that writing to them cannot fail
 * later. Huge ones if it has them: with small pages, address translation shows in products. */
static int reserve(const mr_group *group, int descriptor, const mr_segment *segment) {
  int64_t page = page_for(segment->bytes);
  int64_t pages = (segment->bytes + page - 1) / page;
  int64_t first = pages * group->rank / group->size * page;
  int64_t past = pages * (group->rank + 1) / group->size * page;
  if (past > segment->bytes) past = segment->bytes;
  if (past <= first) return 0;
  int problem = 0;
  do {
    problem = posix_fallocate(descriptor, (off_t)first, (off_t)(past - first));
  } while (problem == EINTR);
#ifdef __linux__
  if (problem == 0 && page == HUGE_PAGE)
    (void)madvise((char *)segment->memory + first, (size_t)(past - first), MADV_COLLAPSE);
#endif
  return problem;
}

/* All learn of the members' problems: one of them, or none. */
static mr_status share_problem(mr_group *group, mr_segment *segment) {
  int lowest = -segment->problem;
  MR_TRY(group->world->transport->lowest(group, &lowest));
  segment->problem = -lowest;
  return MR_OK;
}

mr_status mr_segment_open(mr_group *group, int64_t bytes, mr_segment *segment) {
  char path[PATH_BYTES] = "";
  int descriptor = -1;
  *segment = (mr_segment){NULL, 0, 0};
  if (group->rank == 0) {
    segment->problem = make_file(bytes, &descriptor);
    if (segment->problem == 0)
      (void)snprintf(path, sizeof path, "/proc/%ld/fd/%d", (long)getpid(), descriptor);
  }
  mr_status status = group->world->transport->spread(group, path, PATH_BYTES);
  if (status == MR_OK && path[0]) {
    if (group->rank != 0) segment->problem = open_file(path, &descriptor);
    if (segment->problem == 0) segment->problem = attach(descriptor, bytes, segment);
    if (segment->problem == 0) segment->problem = reserve(group, descriptor, segment);
  }
  if (status == MR_OK) status = share_problem(group, segment);
  if (status != MR_OK || segment->problem != 0) {
    int problem = segment->problem;
    mr_segment_close(segment);
    segment->problem = problem;
  }
  if (descriptor >= 0) (void)close(descriptor);
  return status;
}

void mr_segment_close(mr_segment *segment) {
  if (segment->memory) (void)munmap(segment->memory, (size_t)segment->bytes);
  *segment = (mr_segment){NULL, 0, 0};
}
