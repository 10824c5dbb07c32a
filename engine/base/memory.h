/* The one allocator of the engine. Every byte that the engine asks for on the host passes here,
 * so live and peak bytes are known and any request can be made to fail.
 *
 * Invariant: live = sum of the sizes of the blocks that are allocated and not yet released, and of
 * what mr_memory_count was told. */
#ifndef MR_BASE_MEMORY_H
#define MR_BASE_MEMORY_H

#include <stdint.h>

#include "base/status.h"

typedef struct mr_memory_use {
  int64_t live_bytes;
  int64_t peak_bytes; /* highest live_bytes since the start or mr_memory_reset_peak */
  int64_t requests;   /* allocations so far, failed ones included */
} mr_memory_use;

/* Sets *block to `bytes` zeroed bytes aligned to 64; 0 bytes give a valid, unique block.
 * Errors: MR_ERROR_MEMORY. Release with mr_memory_release. */
mr_status mr_memory_allocate(int64_t bytes, void **block);

/* The same for `count` items of `size` bytes; an overflowing product is MR_ERROR_MEMORY. */
mr_status mr_memory_allocate_array(int64_t count, int64_t size, void **block);

/* As mr_memory_allocate without zeroing: for memory that is wholly written before it is read. */
mr_status mr_memory_allocate_raw(int64_t bytes, void **block);

/* The same for structures: aligned to 16, at MR_MEMORY_LEAD bytes from a multiple of 64, so that
 * what release reads lies beside their first members. */
enum { MR_MEMORY_LEAD = 16 };
mr_status mr_memory_allocate_record(int64_t bytes, void **block);

/* Copies a C string into a block of its own. */
mr_status mr_memory_copy_string(const char *text, char **copy);

/* Gives a block back; NULL does nothing. Debug builds overwrite it first. */
void mr_memory_release(void *block);

/* Counts bytes that came from elsewhere and serve like a block, such as this rank's part of shared
 * memory; below 0 when they are given back. */
void mr_memory_count(int64_t bytes);

mr_memory_use mr_memory_used(void);
void mr_memory_reset_peak(void);

/* For specs: the n-th request from now (1 = the next) fails once with MR_ERROR_MEMORY; 0 turns
 * the hook off. */
void mr_memory_fail_at(int64_t n);

#endif
