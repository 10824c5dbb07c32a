/* The memory is a file without a name: member 0 makes it, the others open it through
 * /proc/PID/fd/N. So there is nothing to remove, whoever is killed when. */
#define _GNU_SOURCE 1
#include "comm/segment.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PATH_BYTES = 64 };

#ifdef __linux__

/* The descriptor of a new nameless file of zeros, or -1. The bytes are reserved, so that writing
 * to them cannot fail later. */
static int make_file(int64_t bytes) {
  int descriptor = memfd_create("marea", MFD_CLOEXEC);
  if (descriptor < 0) return -1;
  if (posix_fallocate(descriptor, 0, (off_t)bytes) == 0) return descriptor;
  (void)close(descriptor);
  return -1;
}

#else

static int make_file(int64_t bytes) {
  (void)bytes;
  return -1;
}

#endif

static void attach(int descriptor, int64_t bytes, mr_segment *segment) {
  if (descriptor < 0) return;
  void *memory = mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (memory == MAP_FAILED) return;
  segment->memory = memory;
  segment->bytes = bytes;
}

mr_status mr_segment_open(mr_group *group, int64_t bytes, mr_segment *segment) {
  const mr_transport *transport = group->world->transport;
  char path[PATH_BYTES] = "";
  int descriptor = -1;
  *segment = (mr_segment){NULL, 0};
  if (group->rank == 0) {
    descriptor = make_file(bytes);
    (void)snprintf(path, sizeof path, "/proc/%ld/fd/%d", (long)getpid(), descriptor);
  }
  mr_status status = transport->spread(group, path, PATH_BYTES);
  if (status == MR_OK) {
    if (group->rank != 0) descriptor = open(path, O_RDWR | O_CLOEXEC);
    attach(descriptor, bytes, segment);
    int all = segment->memory != NULL;
    status = transport->lowest(group, &all);
    if (status != MR_OK || !all) mr_segment_close(segment);
  }
  if (descriptor >= 0) (void)close(descriptor);
  return status;
}

void mr_segment_close(mr_segment *segment) {
  if (segment->memory) (void)munmap(segment->memory, (size_t)segment->bytes);
  *segment = (mr_segment){NULL, 0};
}
