#include "comm/ledger.h"

static const char *const names[MR_COLLECTIVE_COUNT] = {
    "all_reduce", "broadcast", "all_gather", "reduce_scatter", "all_to_all", "send",
    "receive",    "barrier",   "split",      "window",         "close"};

const char *mr_collective_name(mr_collective kind) { return names[kind]; }

void mr_ledger_add(mr_ledger *ledger, mr_collective kind, int64_t bytes) {
  ledger->calls[kind] += 1;
  ledger->bytes[kind] += bytes;
}
