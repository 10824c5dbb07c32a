/* Stacks to run functions on, and switches between them. */
#ifndef MR_SPEC_HOST_FIBERS_H
#define MR_SPEC_HOST_FIBERS_H

#include <stddef.h>

#pragma GCC visibility push(hidden)
namespace mr_host {

struct fiber {
  void *saved = nullptr; /* its stack pointer, or context, while it does not run */
  char *stack = nullptr; /* lowest address; NULL for the stack of the process's own thread */
  size_t bytes = 0;
  void (*entry)() = nullptr; /* never returns */
};

/* A stack with a page below it that must not be touched. */
fiber *fiber_new(void (*entry)());
/* Forgets what runs on it: it begins anew when it is next switched to. */
void fiber_restart(fiber *f);
/* Goes on with `to`; returns when somebody switches to `from`. */
void fiber_switch(fiber *from, fiber *to);
/* To be called first by an entry. */
void fiber_entered();

}  // namespace mr_host
#pragma GCC visibility pop

#endif
