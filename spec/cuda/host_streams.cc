/* Streams and events: work is done in the order of its stream, but not before it must be.
 *
 * Invariant: whatever an event of a stream's work waits for stands in some stream already, so
 * doing the first work of that stream again and again ends. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "host_internal.h"

/* How often the event was recorded, and how many of these have come about. */
struct CUevent_st {
  uint64_t recorded, reached;
  cudaStream_t stream;
  double seconds;
};

struct work {
  std::function<void()> run;
  std::shared_ptr<CUevent_st> waits_for; /* NULL: nothing */
  uint64_t until;                        /* reached */
  std::function<bool()> ready;           /* NULL: always */
};

struct CUstream_st {
  std::deque<work> waiting;
  bool busy; /* its first work runs */
};

namespace mr_host {

void open_device(bool open);
bool is_pinned(const void *memory, size_t bytes);
cudaError_t usable();
cudaError_t breakdown();
void forget_errors();

namespace {

enum { MOST_WAITING = 4096 };

struct handle {
  std::shared_ptr<CUevent_st> event;
};

std::vector<cudaStream_t> &streams() {
  static auto *all = new std::vector<cudaStream_t>{new CUstream_st{}}; /* the default one first */
  return *all;
}

cudaStream_t known(cudaStream_t stream) {
  if (stream == nullptr) return streams()[0];
  for (cudaStream_t each : streams()) {
    if (each == stream) return stream;
  }
  return nullptr;
}

int depth; /* of work within work: opens the device once */

bool do_first(cudaStream_t stream);

/* Brings the first work of a stream to where it can run; false when that takes another process. */
bool prepare_first(cudaStream_t stream) {
  const work &first = stream->waiting.front();
  const auto event = first.waits_for;
  while (event != nullptr && event->reached < first.until && breakdown() == cudaSuccess) {
    if (!do_first(event->stream)) return false;
  }
  return !first.ready || breakdown() != cudaSuccess || first.ready();
}

void run(const work &first) {
  if (!first.run || breakdown() != cudaSuccess) return;
  if (depth++ == 0) open_device(true);
  first.run();
  if (--depth == 0) open_device(false);
}

/* Does the first work of a stream; false when it cannot be done yet, or there is none. */
bool do_first(cudaStream_t stream) {
  if (stream->busy || stream->waiting.empty()) return false;
  stream->busy = true;
  const bool prepared = prepare_first(stream);
  if (prepared) {
    const work first = std::move(stream->waiting.front());
    stream->waiting.pop_front();
    run(first);
  }
  stream->busy = false;
  return prepared;
}

void wait_for_others() {
  struct timespec moment = {0, 50000};
  nanosleep(&moment, nullptr);
}

void do_all(cudaStream_t stream) {
  while (!stream->waiting.empty()) {
    if (!do_first(stream)) wait_for_others();
  }
}

void do_everything() {
  for (size_t left = 1; left > 0;) {
    bool moved = false;
    left = 0;
    for (cudaStream_t stream : streams()) {
      if (stream->waiting.empty()) continue;
      moved |= do_first(stream);
      left++;
    }
    if (left > 0 && !moved) wait_for_others();
  }
}

/* Some of what waits, by chance: half of the time none of it. */
void do_some() {
  if (draw(2) == 0) return;
  cudaStream_t stream = streams()[draw(streams().size())];
  for (uint64_t n = draw(8); n > 0; n--) do_first(stream);
}

cudaError_t put(cudaStream_t stream, work w) {
  cudaStream_t to = known(stream);
  if (to == nullptr) return cudaErrorInvalidResourceHandle;
  if (stream == nullptr) do_everything(); /* the default stream waits for all others */
  to->waiting.push_back(std::move(w));
  if (stream == nullptr || to->waiting.size() > MOST_WAITING) do_all(to);
  do_some();
  return breakdown();
}

double now() {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

std::shared_ptr<CUevent_st> &event_of(cudaEvent_t event) { return ((handle *)event)->event; }

}  // namespace

cudaError_t append(cudaStream_t stream, std::function<void()> run) {
  return put(stream, {std::move(run), nullptr, 0, nullptr});
}

cudaError_t append_when(cudaStream_t stream, std::function<bool()> ready,
                        std::function<void()> run) {
  return put(stream, {std::move(run), nullptr, 0, std::move(ready)});
}

}  // namespace mr_host

using namespace mr_host;

#define TRY(call)                             \
  do {                                        \
    const cudaError_t error_ = (call);        \
    if (error_ != cudaSuccess) return error_; \
  } while (0)

cudaError_t cudaDeviceSynchronize(void) {
  TRY(usable());
  do_everything();
  return breakdown();
}

cudaError_t cudaDeviceReset(void) {
  for (cudaStream_t stream : streams()) stream->waiting.clear();
  forget_errors();
  return cudaSuccess;
}

/* --- copies --- */

static cudaError_t check_copy(const void *to, const void *from, size_t bytes,
                              enum cudaMemcpyKind kind) {
  const bool to_device = on_device(to, bytes), from_device = on_device(from, bytes);
  const bool wants_to = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
  const bool wants_from = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
  if (kind == cudaMemcpyDefault || (to_device == wants_to && from_device == wants_from)) {
    return cudaSuccess;
  }
  return refuse("a copy of %zu bytes of kind %d from %p (%s) to %p (%s)", bytes, (int)kind, from,
                from_device ? "device" : "host", to, to_device ? "device" : "host");
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
                            cudaStream_t stream) {
  TRY(usable());
  if (bytes == 0) return cudaSuccess;
  TRY(check_copy(to, from, bytes, kind));
  if (!on_device(from, bytes) && !is_pinned(from, bytes)) {
    auto staged =
        std::make_shared<std::vector<char>>((const char *)from, (const char *)from + bytes);
    return append(stream, [to, staged, bytes] { memcpy(to, staged->data(), bytes); });
  }
  TRY(append(stream, [to, from, bytes] { memmove(to, from, bytes); }));
  if (!on_device(to, bytes) && !is_pinned(to, bytes)) return cudaStreamSynchronize(stream);
  return cudaSuccess;
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind) {
  TRY(cudaMemcpyAsync(to, from, bytes, kind, nullptr));
  return cudaDeviceSynchronize();
}

cudaError_t cudaMemsetAsync(void *memory, int value, size_t bytes, cudaStream_t stream) {
  TRY(usable());
  if (bytes == 0) return cudaSuccess;
  if (!on_device(memory, bytes)) return refuse("cudaMemset of %p, %zu bytes", memory, bytes);
  return append(stream, [memory, value, bytes] { memset(memory, value, bytes); });
}

cudaError_t cudaMemset(void *memory, int value, size_t bytes) {
  return cudaMemsetAsync(memory, value, bytes, nullptr);
}

/* --- streams --- */

cudaError_t cudaStreamCreate(cudaStream_t *stream) {
  TRY(usable());
  streams().push_back(*stream = new CUstream_st{});
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned) {
  return cudaStreamCreate(stream);
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned, int) {
  return cudaStreamCreate(stream);
}

cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest) {
  TRY(usable());
  *least = 0;
  *greatest = -5;
  return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  if (stream == nullptr || known(stream) == nullptr) return cudaErrorInvalidResourceHandle;
  do_all(stream);
  auto &all = streams();
  for (size_t i = 0; i < all.size(); i++) {
    if (all[i] != stream) continue;
    all.erase(all.begin() + (std::ptrdiff_t)i);
    break;
  }
  delete stream;
  return breakdown();
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  TRY(usable());
  cudaStream_t s = known(stream);
  if (s == nullptr) return cudaErrorInvalidResourceHandle;
  if (stream == nullptr) do_everything();
  do_all(s);
  return breakdown();
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
  TRY(usable());
  cudaStream_t s = known(stream);
  if (s == nullptr) return cudaErrorInvalidResourceHandle;
  if (s->waiting.empty()) return breakdown();
  do_first(s);
  return cudaErrorNotReady;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  TRY(usable());
  const auto &e = event_of(event);
  return put(stream, {nullptr, e, e->recorded, nullptr});
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void *data) {
  TRY(usable());
  return append(stream, [function, data] { function(data); });
}

/* --- events --- */

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned) {
  TRY(usable());
  *event = (cudaEvent_t) new handle{std::make_shared<CUevent_st>()};
  return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t *event) { return cudaEventCreateWithFlags(event, 0); }

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete (handle *)event;
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  TRY(usable());
  const auto e = event_of(event);
  const uint64_t turn = ++e->recorded;
  e->stream = known(stream);
  if (e->stream == nullptr) return cudaErrorInvalidResourceHandle;
  return append(stream, [e, turn] {
    e->reached = turn;
    e->seconds = now();
  });
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  TRY(usable());
  const auto e = event_of(event);
  while (e->reached < e->recorded && breakdown() == cudaSuccess) {
    if (!do_first(e->stream)) wait_for_others();
  }
  return breakdown();
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  TRY(usable());
  const auto e = event_of(event);
  if (e->reached == e->recorded) return breakdown();
  do_first(e->stream);
  return cudaErrorNotReady;
}

cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t start, cudaEvent_t end) {
  const auto s = event_of(start), e = event_of(end);
  if (s->recorded == 0 || e->recorded == 0) return cudaErrorInvalidResourceHandle;
  if (s->reached < s->recorded || e->reached < e->recorded) return cudaErrorNotReady;
  *milliseconds = (float)(1e3 * (e->seconds - s->seconds));
  return cudaSuccess;
}
