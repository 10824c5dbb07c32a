/* Blocks and their threads.
 *
 * Invariant: exactly one thread of one block runs; the others have not begun (order[begun ...]),
 * wait in a meeting, are ready to go on after one, or have ended. */
#include "host_threads.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <map>
#include <numeric>
#include <vector>

#include "fibers.h"
#include "host_internal.h"

#ifdef MR_HOST_ASAN
#include <sanitizer/asan_interface.h>
#endif

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;

namespace mr_host {

mr_host_counts counts;

namespace {

enum { MAX_THREADS = 1024, LANES = 32 };

struct thread {
  uint3 index;
  fiber *on; /* that it began on */
  bool ended;
  meeting kind; /* that it waits in */
  place at;
  unsigned mask;
  void *mine;
};

struct warp {
  unsigned waiting; /* lanes in a meeting of the warp */
};

/* The block that runs. */
struct block {
  unsigned count;              /* of threads */
  thread threads[MAX_THREADS]; /* x first */
  warp warps[MAX_THREADS / LANES];
  unsigned order[MAX_THREADS]; /* in which threads begin, from `rotation` on, round about */
  unsigned rotation;
  unsigned begun, ended, waiting;
  unsigned ready[MAX_THREADS];
  unsigned ready_count;
  bool deep; /* one warp runs as far as it can while the others stand; else all of them mix */
  unsigned current;
  bool failed;
};

block running;
const launch *current_launch;
const std::function<void()> *body;
fiber outside; /* who called run_grid */
auto &fibers = *new std::vector<fiber *>, &idle = *new std::vector<fiber *>; /* for good */
char message[1024];

/* --- shared memory: one piece for each declaration, and one for the launch's own --- */

enum { SHARED_BYTES = 227 << 10, STATIC_BYTES = 48 << 10, GAP = 64 };

struct piece {
  const void *key;
  char *memory;
};

struct shared_memory {
  alignas(128) char bytes[SHARED_BYTES + 64 * GAP];
  std::vector<piece> pieces;
  size_t used; /* gaps counted in */
  size_t declared;
  char *dynamic;
};

shared_memory shared_now;

void poison(void *memory, size_t bytes) {
#ifdef MR_HOST_ASAN
  __asan_poison_memory_region(memory, bytes);
#else
  (void)memory, (void)bytes;
#endif
}

/* Filled with 0xff: a NaN in every real type. Its end is exact under AddressSanitizer. */
char *shared_piece(size_t bytes) {
  char *memory = shared_now.bytes + shared_now.used;
  const size_t whole = (bytes + 2 * GAP - 1) / GAP * GAP;
  if (shared_now.used + whole > sizeof shared_now.bytes) return nullptr;
#ifdef MR_HOST_ASAN
  __asan_unpoison_memory_region(memory, bytes);
#endif
  memset(memory, 0xff, bytes);
  shared_now.used += whole;
  return memory;
}

void clear_shared() {
  poison(shared_now.bytes, shared_now.used == 0 ? sizeof shared_now.bytes : shared_now.used);
  shared_now.pieces.clear();
  shared_now.used = shared_now.declared = 0;
  shared_now.dynamic = nullptr;
}

/* --- who runs next --- */

void go_on(unsigned index) {
  running.current = index;
  threadIdx = running.threads[index].index;
}

void run_threads();

fiber *entering; /* the one that fresh gave last */

fiber *fresh() {
  if (idle.empty()) {
    fibers.push_back(fiber_new(run_threads));
    return entering = fibers.back();
  }
  entering = idle.back();
  idle.pop_back();
  return entering;
}

const char *meeting_name(meeting kind) {
  switch (kind) {
    case meeting::block:
      return "__syncthreads";
    case meeting::sync:
      return "__syncwarp";
    case meeting::shuffle:
      return "a shuffle";
    case meeting::ballot:
      return "a vote";
    case meeting::matrices:
      return "wmma";
    default:
      return "nothing";
  }
}

int describe(char *text, size_t size, unsigned index) {
  const thread &t = running.threads[index];
  const int head = snprintf(text, size, "thread %u,%u,%u ", t.index.x, t.index.y, t.index.z);
  text += head;
  size -= (size_t)head;
  if (t.ended) return head + snprintf(text, size, "has ended");
  if (t.kind == meeting::none) return head + snprintf(text, size, "goes on");
  if (t.kind == meeting::block) {
    return head + snprintf(text, size, "waits in __syncthreads at %s:%d", t.at.file, t.at.line);
  }
  return head + snprintf(text, size, "waits in %s of lanes %08x at %s:%d", meeting_name(t.kind),
                         t.mask, t.at.file, t.at.line);
}

/* The first error of a block stands. */
void record(const char *why, unsigned one, unsigned other) {
  if (running.failed) return;
  running.failed = true;
  int n = snprintf(message, sizeof message, "%s, block %u,%u,%u: %s", current_launch->name,
                   blockIdx.x, blockIdx.y, blockIdx.z, why);
  if (one < running.count) {
    n += snprintf(message + n, sizeof message - (size_t)n, ": ");
    n += describe(message + n, sizeof message - (size_t)n, one);
  }
  if (other < running.count && other != one) {
    n += snprintf(message + n, sizeof message - (size_t)n, ", ");
    describe(message + n, sizeof message - (size_t)n, other);
  }
}

const unsigned NOBODY = ~0U;

/* All threads that are left wait, and for different things: names two of them. */
void record_standstill() {
  unsigned one = NOBODY;
  for (unsigned i = 0; i < running.count && one == NOBODY; i++) {
    if (!running.threads[i].ended) one = i;
  }
  const thread &t = running.threads[one];
  unsigned other = one;
  for (unsigned i = 0; i < running.count && other == one; i++) {
    const thread &o = running.threads[i];
    const bool wanted =
        t.kind == meeting::block || (i / LANES == one / LANES && (t.mask >> i % LANES & 1U) != 0);
    if (wanted && (o.ended || o.kind != t.kind || o.mask != t.mask)) other = i;
  }
  record("a meeting that not all join", one, other);
}

/* The fiber that goes on now. */
fiber *next() {
  if (running.failed || running.ended == running.count) return &outside;
  const bool may_begin = running.begun < running.count;
  if (running.ready_count == 0 && !may_begin) {
    record_standstill();
    return &outside;
  }
  if (may_begin && (running.ready_count == 0 || (!running.deep && draw(2) == 0))) return fresh();
  const unsigned last = running.ready_count - 1;
  const unsigned pick = running.deep ? last : (unsigned)draw(running.ready_count);
  const unsigned index = running.ready[pick];
  running.ready[pick] = running.ready[--running.ready_count];
  go_on(index);
  return running.threads[index].on;
}

/* Leaves the running fiber, whose thread waits, has ended or is ready. */
void leave(fiber *from) {
  fiber *to = next();
  if (to != from) fiber_switch(from, to);
}

/* What each fiber does for ever: threads that have not begun, one after the other. */
void run_threads() {
  fiber_entered();
  fiber *own = entering;
  for (;;) {
    while (!running.failed && running.begun < running.count) {
      unsigned index = running.begun++ + running.rotation;
      index = running.order[index < running.count ? index : index - running.count];
      go_on(index);
      running.threads[index].on = own;
      (*body)();
      running.threads[index].ended = true;
      running.ended++;
    }
    idle.push_back(own);
    fiber_switch(own, next()); /* never to itself: nobody is left to begin */
  }
}

/* After a failed block: whatever still hangs on the fibers is forgotten. */
void restart_fibers() {
  for (fiber *f : fibers) fiber_restart(f);
  idle = fibers;
}

void begin_block() {
  running.begun = running.ended = running.waiting = running.ready_count = 0;
  running.rotation = (unsigned)draw(running.count);
  running.deep = draw(2) == 0;
  for (unsigned i = 0; i < running.count; i++) {
    thread &t = running.threads[i];
    t.ended = false;
    t.kind = meeting::none;
  }
  for (warp &w : running.warps) w.waiting = 0;
  clear_shared();
  if (current_launch->shared_bytes > 0) {
    shared_now.dynamic = shared_piece(current_launch->shared_bytes);
  }
}

void run_block() {
  begin_block();
  counts.blocks++;
  fiber_switch(&outside, fresh());
  if (!running.failed) return;
  restart_fibers();
  break_down(message);
}

void number_threads() {
  running.count = blockDim.x * blockDim.y * blockDim.z;
  unsigned index = 0;
  for (unsigned z = 0; z < blockDim.z; z++) {
    for (unsigned y = 0; y < blockDim.y; y++) {
      for (unsigned x = 0; x < blockDim.x; x++) running.threads[index++].index = {x, y, z};
    }
  }
  for (unsigned i = 0; i < running.count; i++) {
    const unsigned other = (unsigned)draw(i + 1);
    running.order[i] = running.order[other];
    running.order[other] = i;
  }
}

void make_ready(unsigned index) {
  running.threads[index].kind = meeting::none;
  running.ready[running.ready_count++] = index;
}

}  // namespace

void run_grid(const launch &l, const std::function<void()> &of_thread) {
  current_launch = &l;
  body = &of_thread;
  gridDim = l.grid;
  blockDim = l.block;
  running.failed = false;
  number_threads();
  const uint64_t blocks = (uint64_t)l.grid.x * l.grid.y * l.grid.z;
  uint64_t stride = draw(blocks) + 1; /* prime to the number of blocks: all come, once */
  while (std::gcd(stride, blocks) != 1) stride++;
  uint64_t at = draw(blocks);
  for (uint64_t i = 0; i < blocks && !running.failed; i++) {
    at = (at + stride) % blocks;
    blockIdx = {(unsigned)(at % l.grid.x), (unsigned)(at / l.grid.x % l.grid.y),
                (unsigned)(at / l.grid.x / l.grid.y)};
    run_block();
  }
}

/* --- what kernels call --- */

void fail(place at, const char *format, ...) {
  char why[256];
  va_list arguments;
  va_start(arguments, format);
  const int n = vsnprintf(why, sizeof why, format, arguments);
  va_end(arguments);
  if (n > 0 && (size_t)n < sizeof why) {
    snprintf(why + n, sizeof why - (size_t)n, " at %s:%d", at.file, at.line);
  }
  record(why, running.current, running.current);
  fiber_switch(running.threads[running.current].on, &outside);
  abort(); /* nobody switches back */
}

/* --- barriers by their place --- */

static std::vector<mr_host_barrier> &barriers() {
  static auto *all = new std::vector<mr_host_barrier>;
  return *all;
}

static mr_host_barrier skipped;

static bool is_at(const mr_host_barrier &b, place at) {
  return b.line == at.line && strcmp(b.file, at.file) == 0;
}

static void note_barrier(place at) {
  for (const mr_host_barrier &b : barriers()) {
    if (is_at(b, at)) return;
  }
  barriers().push_back({at.file, at.line});
}

void meet_block(place at) {
  if (skipped.file != nullptr && is_at(skipped, at)) return;
  thread &t = running.threads[running.current];
  const unsigned own = running.current;
  t.kind = meeting::block;
  t.at = at;
  counts.waits++;
  if (++running.waiting == running.count) {
    for (unsigned i = 0; i < running.count; i++) {
      const place other = running.threads[i].at;
      if (other.line != at.line || strcmp(other.file, at.file) != 0) {
        record("threads meet in different barriers", own, i);
      }
    }
    note_barrier(at);
    running.waiting = 0;
    const unsigned first = (unsigned)draw(running.count / LANES + 1) * LANES;
    for (unsigned i = 0; i < running.count && !running.failed; i++) {
      make_ready(first + i < running.count ? first + i : first + i - running.count);
    }
  }
  leave(t.on);
}

/* All lanes of the mask are here. */
static void meeting_complete(unsigned first, const thread &last,
                             void (*work)(place at, unsigned mask, void **all)) {
  void *all[LANES] = {nullptr};
  for (unsigned lane = 0; lane < LANES; lane++) {
    if ((last.mask >> lane & 1U) == 0) continue;
    const thread &t = running.threads[first + lane];
    if (t.kind != last.kind || t.mask != last.mask) {
      record("lanes meet in different ways", running.current, first + lane);
      return;
    }
    all[lane] = t.mine;
  }
  if (work != nullptr) work(last.at, last.mask, all);
  for (unsigned lane = 0; lane < LANES; lane++) {
    if ((last.mask >> lane & 1U) != 0) make_ready(first + lane);
  }
}

void meet_warp(place at, meeting kind, unsigned mask, void *mine,
               void (*work)(place at, unsigned mask, void **all)) {
  const unsigned lane = running.current % LANES, first = running.current - lane;
  thread &t = running.threads[running.current];
  warp &w = running.warps[first / LANES];
  if ((mask >> lane & 1U) == 0) fail(at, "a lane that is not in its mask %08x", mask);
  t.kind = kind;
  t.at = at;
  t.mask = mask;
  t.mine = mine;
  counts.waits++;
  w.waiting |= 1U << lane;
  if ((w.waiting & mask) == mask) {
    w.waiting &= ~mask;
    const thread last = t;
    meeting_complete(first, last, work);
  }
  leave(t.on);
}

void exchange(place at, unsigned mask, void **all) {
  for (int i = 0; i < LANES; i++) {
    lane *to = (lane *)all[i];
    if (to == nullptr) continue;
    if (to->from >= 0 && (mask >> to->from & 1U) == 0) {
      fail(at, "lane %d takes from lane %d, which is not in its mask %08x", i, to->from, mask);
    }
    to->result = to->from < 0 ? to->value : ((lane *)all[to->from])->value;
  }
}

void vote(place, unsigned, void **all) {
  uint64_t votes = 0;
  for (int i = 0; i < LANES; i++) {
    if (all[i] != nullptr && ((lane *)all[i])->value != 0) votes |= 1U << i;
  }
  for (int i = 0; i < LANES; i++) {
    if (all[i] != nullptr) ((lane *)all[i])->result = votes;
  }
}

void *shared(const void *key, size_t bytes, place at) {
  for (const piece &p : shared_now.pieces) {
    if (p.key == key) return p.memory;
  }
  shared_now.declared += bytes;
  if (shared_now.declared > STATIC_BYTES) fail(at, "more than 48 KiB of static shared memory");
  char *memory = shared_piece(bytes);
  if (memory == nullptr) fail(at, "no shared memory is left");
  shared_now.pieces.push_back({key, memory});
  return memory;
}

void *shared_dynamic() { return shared_now.dynamic; }

/* --- launches --- */

static std::map<const void *, size_t> &opted_in() {
  static std::map<const void *, size_t> bytes;
  return bytes;
}

cudaError_t check_words(const launch &l, int index, const void *argument, size_t bytes) {
  for (size_t at = 0; at + sizeof(uintptr_t) <= bytes; at += sizeof(uintptr_t)) {
    uintptr_t word;
    memcpy(&word, (const char *)argument + at, sizeof word);
    /* where a process of this kind has its code, heap and stacks; anything else is a number */
    if (word >> 46 != 1 || on_device((const void *)word, 1)) continue;
    return refuse("%s: argument %d has %p, which is no memory of the device", l.name, index,
                  (const void *)word);
  }
  return cudaSuccess;
}

cudaError_t enqueue(const launch &l, std::function<void()> of_thread) {
  const uint64_t threads = (uint64_t)l.block.x * l.block.y * l.block.z;
  const auto allowed = opted_in().find(l.kernel);
  const size_t most = allowed == opted_in().end() ? (size_t)STATIC_BYTES : allowed->second;
  if (threads == 0 || threads > MAX_THREADS || l.block.z > 64 || l.grid.x == 0 || l.grid.y == 0 ||
      l.grid.z == 0 || l.grid.x > 0x7fffffffU || l.grid.y > 65535 || l.grid.z > 65535 ||
      l.shared_bytes > most) {
    return refuse("%s: grid %u,%u,%u of blocks %u,%u,%u with %zu bytes of shared memory", l.name,
                  l.grid.x, l.grid.y, l.grid.z, l.block.x, l.block.y, l.block.z, l.shared_bytes);
  }
  counts.launches++;
  return append(l.stream, [l, of_thread] { run_grid(l, of_thread); });
}

}  // namespace mr_host

mr_host_counts mr_host_count(void) { return mr_host::counts; }

const mr_host_barrier *mr_host_barrier_at(int i) {
  const auto &all = mr_host::barriers();
  return i >= 0 && (size_t)i < all.size() ? &all[(size_t)i] : nullptr;
}

void mr_host_skip_barrier(const mr_host_barrier *barrier) {
  mr_host::skipped = barrier == nullptr ? mr_host_barrier{} : *barrier;
}

cudaError_t mr_host_function_attribute(const void *kernel, enum cudaFuncAttribute attribute,
                                       int value) {
  if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize) return cudaSuccess;
  if (value < 0 || value > mr_host::SHARED_BYTES) return cudaErrorInvalidValue;
  mr_host::opted_in()[kernel] = (size_t)value;
  return cudaSuccess;
}
