/* Status codes of the engine, and the message that goes with a failure.
 *
 * Invariant: a function that returns anything but MR_OK has recorded one message for its thread;
 * it stays until the next failure of that thread. Nothing here prints, raises or exits. */
#ifndef MR_BASE_STATUS_H
#define MR_BASE_STATUS_H

typedef enum mr_status {
  MR_OK = 0,
  MR_ERROR_IO,          /* a file, a disk, a mapping */
  MR_ERROR_MEMORY,      /* no memory */
  MR_ERROR_ARGUMENT,    /* a shape, dtype, range or order of calls that cannot be served */
  MR_ERROR_CONTENT,     /* a recipe, plan, config or corpus that says something impossible */
  MR_ERROR_DAMAGED,     /* a file that is truncated, altered or foreign; a check that failed */
  MR_ERROR_ENVIRONMENT, /* a machine, library or folder that cannot be used as it is */
  MR_ERROR_WINDOW,      /* a window that has no defined loss */
  MR_ERROR_RANKS,       /* ranks that disagree, or a rank that is lost */
  MR_ERROR_PEER         /* another rank stopped first; its own exit code counts */
} mr_status;

/* Records a formatted message (at most 2,047 bytes are kept) and returns `status`. */
mr_status mr_fail(mr_status status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Static analysis does not see into other files: this tells it what mr_fail returns. */
#ifdef __clang_analyzer__
#define mr_fail(status, ...) ((void)(mr_fail)(status, __VA_ARGS__), (status))
#endif

/* Puts "prefix: " in front of the recorded message and returns `status`; for callers that know
 * what a failing part belongs to (a file, a tensor's name). */
mr_status mr_fail_within(mr_status status, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The message of this thread's last failure; "" before the first. Owned by the thread. */
const char *mr_status_message(void);

/* The exit code of DESIGN's table that a program ends with on `status`: 0 to 7. */
int mr_status_exit_code(mr_status status);

/* Returns from the caller on failure. */
#define MR_TRY(expression)                \
  do {                                    \
    mr_status mr_try_ = (expression);     \
    if (mr_try_ != MR_OK) return mr_try_; \
  } while (0)

/* Sets the caller's `status` and goes to its label `cleanup` on failure. */
#define MR_GOTO(expression)            \
  do {                                 \
    status = (expression);             \
    if (status != MR_OK) goto cleanup; \
  } while (0)

/* Evaluates `expression` in any case and keeps the first error in `status`. */
#define MR_KEEP(status, expression)             \
  do {                                          \
    mr_status mr_keep_ = (expression);          \
    if ((status) == MR_OK) (status) = mr_keep_; \
  } while (0)

#endif
