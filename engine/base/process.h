/* Child programs: started without a shell, waited for with a time limit, never left behind.
 *
 * Invariant: a mr_process owns its child until the child was waited for; releasing it earlier
 * kills the child and waits. */
#ifndef MR_BASE_PROCESS_H
#define MR_BASE_PROCESS_H

#include "base/status.h"

typedef struct mr_process mr_process;

typedef struct mr_process_options {
  const char *const *arguments; /* NULL at the end; arguments[0] is looked up in PATH */
  const char *input;            /* file for standard input; NULL: this process's */
  const char *output, *errors;  /* files to write standard output and error to, or NULL; when both
                                   name one file, both go there in the order they are written */
  const char *const *set;       /* "NAME=value" entries, NULL at the end, or NULL */
  const char *const *unset;     /* beginnings of names to leave out, NULL at the end, or NULL */
  int gentle; /* hand on the first SIGINT, SIGTERM or SIGHUP as SIGUSR1, later ones as SIGTERM */
} mr_process_options;

typedef enum mr_process_end { MR_PROCESS_EXIT, MR_PROCESS_SIGNAL, MR_PROCESS_LIMIT } mr_process_end;

typedef struct mr_process_result {
  mr_process_end end;
  int number;  /* exit code or signal; 0 at the limit */
  int stopped; /* the last of SIGINT, SIGTERM and SIGHUP that this process got meanwhile, or 0 */
} mr_process_result;

/* Starts a program. Unless standard input is a terminal that it shares, it leads a process group
 * of its own. Errors: MR_ERROR_ENVIRONMENT when it cannot be started, MR_ERROR_MEMORY. */
mr_status mr_process_start(const mr_process_options *options, mr_process **process);

/* Waits up to `seconds` (0: without limit) and says how it ended. At the limit the child gets
 * SIGTERM, and SIGKILL five seconds later, and the end is MR_PROCESS_LIMIT. SIGINT, SIGTERM, SIGHUP
 * and SIGUSR1 that arrive meanwhile are handed to the child, as they are or as `gentle` says. */
mr_status mr_process_wait(mr_process *process, double seconds, mr_process_result *result);

/* *ended = 1 when the child has ended, without waiting. */
mr_status mr_process_poll(mr_process *process, int *ended);

/* Sends a signal; nothing happens when the child has ended. */
mr_status mr_process_signal(mr_process *process, int number);

/* The child's process id. */
long mr_process_id(const mr_process *process);

/* Kills the child if it runs, waits for it, and frees the handle; NULL does nothing. */
void mr_process_release(mr_process *process);

#endif
