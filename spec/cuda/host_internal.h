/* What the sources of the host's CUDA share. */
#ifndef MR_SPEC_HOST_INTERNAL_H
#define MR_SPEC_HOST_INTERNAL_H

#include <functional>

#include "host_threads.h"

#if defined(__SANITIZE_ADDRESS__)
#define MR_HOST_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define MR_HOST_ASAN 1
#endif
#endif

#pragma GCC visibility push(hidden)
namespace mr_host {

/* A number below n, at least 1. */
uint64_t draw(uint64_t n);
extern mr_host_counts counts;

/* Puts work at a stream's end; some of what waits in streams is done on the way. */
cudaError_t append(cudaStream_t stream, std::function<void()> work);
/* The same for work that waits for another process: it is done once `ready` says so. */
cudaError_t append_when(cudaStream_t stream, std::function<bool()> ready,
                        std::function<void()> work);
/* Keeps the first error of what streams did: every later call returns it. */
void break_down(const char *message);
/* Says why a call is refused; returns cudaErrorInvalidValue. */
cudaError_t refuse(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Is all of that memory of one allocation of the device? */
bool on_device(const void *memory, size_t bytes);

/* Runs `thread` once for every thread of the grid. */
void run_grid(const launch &l, const std::function<void()> &thread);

}  // namespace mr_host
#pragma GCC visibility pop

#endif
