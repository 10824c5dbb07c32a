/* Tensors: contiguous, row-major arrays of one dtype with 64-bit extents, on a device.
 *
 * A tensor is a counted handle on a piece of a storage. Views (reshape, slice of the first axis)
 * share the storage. A tensor that took part in a recorded operation knows its node; a leaf that
 * requires gradients holds its gradient tensor.
 *
 * Invariants: offset + count * size lies within the storage; a tensor that has ended has no
 * storage and every access to it is an error. */
#ifndef MR_TENSOR_TENSOR_H
#define MR_TENSOR_TENSOR_H

#include <stdint.h>

#include "base/dtype.h"
#include "base/status.h"
#include "device/device.h"

enum { MR_MAX_AXES = 6 };

typedef struct mr_shape {
  int axes;
  int64_t extent[MR_MAX_AXES];
} mr_shape;

typedef struct mr_storage mr_storage;
typedef struct mr_tensor mr_tensor;
struct mr_watch; /* grad floor: what follows a leaf's gradient */

/* What a tensor was computed from; the grad floor puts this first in its nodes. */
typedef struct mr_origin mr_origin;
struct mr_origin {
  void (*release)(mr_origin *self);
};

struct mr_storage {
  int64_t references;
  mr_device *device;
  int64_t bytes;
  void *memory;
  int64_t version; /* grows with every change in place, so that a backward sees stale inputs */
  /* How memory is given back. NULL: to the device. Foreign memory (a mapped file, a shared
   * segment, a pool) brings its own function and owner. */
  void (*release)(void *owner, void *memory);
  void *owner;
  /* All bytes as the host last wrote or read them; true while the versions agree. NULL where
   * memory is the host's, and for reals. */
  void *mirror;
  int64_t mirror_version;
  int paired; /* the tensor that was made with it, in one block, is still there */
  int inside; /* `memory` lies in that block too */
};

struct mr_tensor {
  int64_t references;
  mr_dtype dtype;
  mr_shape shape;
  int64_t count; /* number of elements */
  mr_storage *storage;
  int64_t offset; /* in bytes */

  int requires_gradient;  /* a leaf that asks for a gradient, or the result of a recorded operation
                           */
  int keep;               /* backward leaves its value in place */
  int ended;              /* backward consumed it */
  mr_tensor *gradient;    /* owned; NULL until one arrives */
  mr_origin *origin;      /* owned reference; NULL for leaves */
  struct mr_watch *watch; /* borrowed from whoever made the leaf; NULL for others */
  int64_t uses;     /* of this backward: calls that take it in; of a leaf, those still to come */
  mr_storage *home; /* the storage that it shares a block with; NULL: it has its own */
};

/* Number of elements; MR_ERROR_ARGUMENT on a negative extent, too many axes or overflow. */
mr_status mr_shape_count(const mr_shape *shape, int64_t *count);
int mr_shape_equal(const mr_shape *a, const mr_shape *b);
/* "[2,3]" into text (at least 128 bytes); returns text. */
const char *mr_shape_text(const mr_shape *shape, char text[128]);
/* Product of all extents but the last (rows), and the last (columns); a scalar is 1 x 1. */
int64_t mr_shape_rows(const mr_shape *shape);
int64_t mr_shape_columns(const mr_shape *shape);

/* A storage over memory that someone else owns; `release(owner, memory)` is called at its end. */
mr_status mr_storage_adopt(mr_device *device, void *memory, int64_t bytes,
                           void (*release)(void *owner, void *memory), void *owner,
                           mr_storage **storage);
/* Moves the contents into `memory` of the same device, at least as large, which someone else owns;
 * every tensor over the storage follows. On failure nothing has changed, and memory stays the
 * caller's; else `release(owner, memory)` is called at its end. */
mr_status mr_storage_move(mr_storage *storage, void *memory,
                          void (*release)(void *owner, void *memory), void *owner);
void mr_storage_release(mr_storage *storage);

/* A new tensor of zeros. Errors: MR_ERROR_ARGUMENT (shape), MR_ERROR_MEMORY. */
mr_status mr_tensor_new(mr_device *device, mr_dtype dtype, const mr_shape *shape,
                        mr_tensor **tensor);
/* The same with unspecified contents: for results that are wholly written. */
mr_status mr_tensor_new_raw(mr_device *device, mr_dtype dtype, const mr_shape *shape,
                            mr_tensor **tensor);
/* A view of `storage` from `offset` bytes on. */
mr_status mr_tensor_new_over(mr_storage *storage, int64_t offset, mr_dtype dtype,
                             const mr_shape *shape, mr_tensor **tensor);
/* A view of `count` elements of `base` from element `first` on, in `shape`. Not recorded. */
mr_status mr_tensor_view(mr_tensor *base, int64_t first, const mr_shape *shape, mr_tensor **view);

mr_tensor *mr_tensor_retain(mr_tensor *tensor);
/* NULL does nothing. */
void mr_tensor_release(mr_tensor *tensor);

/* Gives up the value: the storage is released although handles remain. */
void mr_tensor_end(mr_tensor *tensor);

/* First byte of the elements; the tensor must not have ended. */
void *mr_tensor_data(const mr_tensor *tensor);
int64_t mr_tensor_bytes(const mr_tensor *tensor);
mr_device *mr_tensor_device(const mr_tensor *tensor);

/* Notes a change in place; every function that writes into an existing tensor calls it. */
void mr_tensor_changed(mr_tensor *tensor);

/* MR_ERROR_ARGUMENT when the value is gone; `what` names the tensor in the message. */
mr_status mr_tensor_readable(const mr_tensor *tensor, const char *what);

/* Copies values, also from one device to another; equal dtype and count, else MR_ERROR_ARGUMENT.
 */
mr_status mr_tensor_copy_from(mr_tensor *to, const mr_tensor *from);
/* A copy with a storage of its own, converted to `dtype` (reals to reals, integers to integers
 * and integers to reals; reals to integers is MR_ERROR_ARGUMENT). */
mr_status mr_tensor_convert(const mr_tensor *from, mr_dtype dtype, mr_tensor **copy);

/* Copies all elements to the host; waits for the device unless the host wrote them. */
mr_status mr_tensor_read_sync(const mr_tensor *tensor, void *host);
/* Takes all elements from the host, whose array is the caller's again at return. */
mr_status mr_tensor_write(mr_tensor *tensor, const void *host);

/* All elements on the host, to be read. Integers that the host wrote cost neither a copy nor a
 * wait, on any device. Borrowed from the tensor until it changes or ends, or `owned`. */
typedef struct mr_host_values {
  const void *data;
  void *owned;
} mr_host_values;
mr_status mr_tensor_host_sync(const mr_tensor *tensor, mr_host_values *values);
/* Also after a failure, and twice. */
void mr_host_values_release(mr_host_values *values);

/* Sum of all elements in double, in a fixed order, reals only: as an f64 scalar that is there when
 * the device comes to it, or as a number now. */
mr_status mr_tensor_total(const mr_tensor *tensor, mr_tensor **total);
mr_status mr_tensor_total_sync(const mr_tensor *tensor, double *total);

#endif
