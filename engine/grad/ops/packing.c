#include "grad/ops/packing.h"

#include <stdlib.h>

#include "base/memory.h"

typedef struct stretch {
  int64_t start, length, sequence;
} stretch;

/* The values of an i64 tensor on the host, borrowed. */
static mr_status read_integers(const mr_tensor *tensor, const int64_t **values) {
  mr_host_values host;
  MR_TRY(mr_tensor_host_sync(tensor, &host));
  *values = host.data; /* of integers, never owned */
  return MR_OK;
}

/* Fills start and length of each of the `count` sequences. */
static mr_status read_stretches(const mr_call *call, int lengths, int starts, int64_t count,
                                stretch *list) {
  const int64_t *length = NULL, *start = NULL;
  int64_t end = 0;
  MR_TRY(read_integers(call->tensor[lengths], &length));
  for (int64_t s = 0; s < count; s++) {
    list[s] = (stretch){.start = end, .length = length[s], .sequence = s + 1};
    if (__builtin_add_overflow(end, length[s], &end)) end = INT64_MAX;
  }
  if (!call->tensor[starts]) return MR_OK;
  MR_TRY(read_integers(call->tensor[starts], &start));
  for (int64_t s = 0; s < count; s++) list[s].start = start[s];
  return MR_OK;
}

static mr_status check_within(const mr_call *call, const stretch *list, int64_t count,
                              int64_t rows) {
  for (int64_t s = 0; s < count; s++) {
    long long start = list[s].start, length = list[s].length;
    if (length < 0)
      return mr_call_fail(call, "lengths[%lld] must be at least 0, got %lld", (long long)s + 1,
                          length);
    if (start < 0 || start > rows || length > rows - start)
      return mr_call_fail(call,
                          "sequence %lld begins at row %lld and has %lld rows, outside the %lld "
                          "rows there are",
                          (long long)s + 1, start, length, (long long)rows);
  }
  return MR_OK;
}

/* Empty sequences overlap nothing: they come before what begins at their row. */
static int earlier_first(const void *a, const void *b) {
  const stretch *x = a, *y = b;
  if (x->start != y->start) return x->start < y->start ? -1 : 1;
  if (x->length != y->length) return x->length < y->length ? -1 : 1;
  return (x->sequence > y->sequence) - (x->sequence < y->sequence);
}

static mr_status check_apart(const mr_call *call, stretch *list, int64_t count) {
  const stretch *last = NULL;
  qsort(list, (size_t)count, sizeof *list, earlier_first);
  for (int64_t i = 0; i < count; i++) {
    if (list[i].length == 0) continue;
    if (last && list[i].start < last->start + last->length)
      return mr_call_fail(call, "sequences %lld and %lld overlap at row %lld",
                          (long long)last->sequence, (long long)list[i].sequence,
                          (long long)list[i].start);
    last = &list[i];
  }
  return MR_OK;
}

mr_status mr_packing_check(const mr_call *call, int lengths, int starts, int64_t rows) {
  void *block = NULL;
  MR_TRY(mr_call_check_axes(call, lengths, 1));
  int64_t count = call->tensor[lengths]->count;
  if (call->tensor[starts]) MR_TRY(mr_call_check_vector(call, starts, count));
  MR_TRY(mr_memory_allocate_array(count, sizeof(stretch), &block));
  mr_status status = read_stretches(call, lengths, starts, count, block);
  if (status == MR_OK) status = check_within(call, block, count, rows);
  if (status == MR_OK && call->tensor[starts]) status = check_apart(call, block, count);
  mr_memory_release(block);
  return status;
}

mr_status mr_packing_save_starts(mr_call *call, int lengths, int slot) {
  void *block = NULL;
  const int64_t *length = NULL;
  int64_t count = call->tensor[lengths]->count, end = 0;
  MR_TRY(mr_call_save(call, slot, MR_I64, &call->tensor[lengths]->shape));
  MR_TRY(read_integers(call->tensor[lengths], &length));
  MR_TRY(mr_memory_allocate_array(count, sizeof(int64_t), &block));
  int64_t *start = block;
  for (int64_t s = 0; s < count; s++) {
    start[s] = end;
    end += length[s];
  }
  mr_status status = mr_tensor_write(call->saved[slot], start);
  mr_memory_release(block);
  return status;
}

mr_status mr_packing_products(const mr_call *call, int lengths, const mr_attention *layout,
                              mr_product_visit visit, void *context) {
  static const struct part {
    int transpose_a, transpose_b, to_scores;
  } parts[] = {{0, 1, 1}, {0, 0, 0}, {0, 1, 1}, {1, 0, 0}, {0, 0, 0}, {1, 0, 0}};
  const int64_t *length = NULL;
  MR_TRY(read_integers(call->tensor[lengths], &length));
  for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
    for (int64_t s = 0; s < layout->sequences; s++) {
      int64_t rows = length[s], size = layout->head_size;
      mr_product_shape shape = {.count = layout->heads,
                                .batched = 1,
                                .transpose_a = parts[i].transpose_a,
                                .transpose_b = parts[i].transpose_b,
                                .m = rows,
                                .n = parts[i].to_scores ? rows : size,
                                .k = parts[i].to_scores ? size : rows};
      MR_TRY(visit(context, &shape));
    }
  }
  return MR_OK;
}
