/* Files mapped into memory, read-only (base/file.h). */
#define _GNU_SOURCE 1
#include <errno.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/call.h"
#include "base/file.h"
#include "base/memory.h"

struct mr_mapping {
  _Atomic int64_t references;
  void *data; /* NULL for an empty file, which cannot be mapped */
  int64_t bytes;
};

static mr_status map_descriptor(int descriptor, const char *path, mr_mapping *mapping) {
  struct stat info;
  if (MR_CALL(fstat(descriptor, &info)) != 0) return mr_call_error("read", path);
  mapping->bytes = info.st_size;
  if (mapping->bytes == 0) return MR_OK;
  void *data = mr_call_fails()
                   ? MAP_FAILED
                   : mmap(NULL, (size_t)mapping->bytes, PROT_READ, MAP_PRIVATE, descriptor, 0);
  if (data == MAP_FAILED) return mr_call_error("map", path);
  mapping->data = data;
  return MR_OK;
}

mr_status mr_mapping_open(const char *path, mr_mapping **mapping) {
  void *block = NULL;
  *mapping = NULL;
  MR_TRY(mr_memory_allocate(sizeof(mr_mapping), &block));
  mr_mapping *made = block;
  atomic_init(&made->references, 1);
  int descriptor = -1;
  mr_status status = mr_call_open_regular(path, &descriptor);
  if (status == MR_OK) {
    status = map_descriptor(descriptor, path, made);
    (void)close(descriptor); /* only read: nothing can be lost */
  }
  if (status == MR_OK)
    *mapping = made;
  else
    mr_mapping_release(made);
  return status;
}

mr_mapping *mr_mapping_retain(mr_mapping *mapping) {
  atomic_fetch_add(&mapping->references, 1);
  return mapping;
}

void mr_mapping_release(mr_mapping *mapping) {
  if (!mapping || atomic_fetch_sub(&mapping->references, 1) > 1) return;
  if (mapping->data) (void)munmap(mapping->data, (size_t)mapping->bytes);
  mr_memory_release(mapping);
}

const void *mr_mapping_data(const mr_mapping *mapping) {
  return mapping->data ? mapping->data : "";
}

int64_t mr_mapping_bytes(const mr_mapping *mapping) { return mapping->bytes; }
