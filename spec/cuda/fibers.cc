#include "fibers.h"

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "host_internal.h"

#ifdef MR_HOST_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

#if !defined(__x86_64__)
#include <ucontext.h>
#endif

namespace mr_host {

#ifdef MR_HOST_ASAN
static const size_t STACK_BYTES = 256 << 10;
static const void *came_from_stack;
static size_t came_from_bytes;
#else
static const size_t STACK_BYTES = 64 << 10;
#endif

/* --- the switch itself: registers that a function keeps, and the stack pointer --- */

#if defined(__x86_64__)

extern "C" void mr_host_switch(void **save, void *load);
__asm__(
    ".text\n"
    ".globl mr_host_switch\n"
    ".hidden mr_host_switch\n"
    ".type mr_host_switch, @function\n"
    "mr_host_switch:\n"
    "  pushq %rbp\n"
    "  pushq %rbx\n"
    "  pushq %r12\n"
    "  pushq %r13\n"
    "  pushq %r14\n"
    "  pushq %r15\n"
    "  movq %rsp, (%rdi)\n"
    "  movq %rsi, %rsp\n"
    "  popq %r15\n"
    "  popq %r14\n"
    "  popq %r13\n"
    "  popq %r12\n"
    "  popq %rbx\n"
    "  popq %rbp\n"
    "  ret\n"
    ".size mr_host_switch, .-mr_host_switch\n");

static void prepare(fiber *f) {
  void **top = (void **)(f->stack + f->bytes);
  *--top = nullptr;          /* where the entry would return to; keeps its stack aligned */
  *--top = (void *)f->entry; /* what the switch returns to */
  for (int i = 0; i < 6; i++) *--top = nullptr;
  f->saved = top;
}

static void change(fiber *from, fiber *to) { mr_host_switch(&from->saved, to->saved); }

#else

static void prepare(fiber *f) {
  if (f->saved == nullptr) f->saved = calloc(1, sizeof(ucontext_t));
  ucontext_t *context = (ucontext_t *)f->saved;
  getcontext(context);
  context->uc_stack.ss_sp = f->stack;
  context->uc_stack.ss_size = f->bytes;
  context->uc_link = nullptr;
  makecontext(context, f->entry, 0);
}

static void change(fiber *from, fiber *to) {
  if (from->saved == nullptr) from->saved = calloc(1, sizeof(ucontext_t));
  swapcontext((ucontext_t *)from->saved, (ucontext_t *)to->saved);
}

#endif

/* --- fibers --- */

fiber *fiber_new(void (*entry)()) {
  const size_t page = (size_t)sysconf(_SC_PAGESIZE);
  char *memory = (char *)mmap(nullptr, STACK_BYTES + page, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED || mprotect(memory, page, PROT_NONE) != 0) {
    perror("stack of a fiber");
    abort();
  }
  fiber *f = new fiber;
  f->stack = memory + page;
  f->bytes = STACK_BYTES;
  f->entry = entry;
  prepare(f);
  return f;
}

void fiber_restart(fiber *f) {
#ifdef MR_HOST_ASAN
  __asan_unpoison_memory_region(f->stack, f->bytes);
#endif
  prepare(f);
}

void fiber_entered() {
#ifdef MR_HOST_ASAN
  __sanitizer_finish_switch_fiber(nullptr, &came_from_stack, &came_from_bytes);
#endif
}

#ifdef MR_HOST_ASAN
/* Bounds of the process's own stack, found when it is first left. */
static void find_bounds(fiber *f) {
  pthread_attr_t attributes;
  void *stack = nullptr;
  pthread_getattr_np(pthread_self(), &attributes);
  pthread_attr_getstack(&attributes, &stack, &f->bytes);
  pthread_attr_destroy(&attributes);
  f->stack = (char *)stack;
}

void fiber_switch(fiber *from, fiber *to) {
  void *fake_stack = nullptr;
  if (from->stack == nullptr) find_bounds(from);
  __sanitizer_start_switch_fiber(&fake_stack, to->stack, to->bytes);
  change(from, to);
  __sanitizer_finish_switch_fiber(fake_stack, &came_from_stack, &came_from_bytes);
}
#else
void fiber_switch(fiber *from, fiber *to) { change(from, to); }
#endif

}  // namespace mr_host
