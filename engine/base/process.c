/* Child programs through posix_spawn. While one is waited for, the signals in `forwarded` are
 * only noted by a handler and handed on by the waiting loop. */
#define _GNU_SOURCE
#include "base/process.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"

#define FORWARDED 4
#define KILL_AFTER_SECONDS 5.0

extern char **environ;

struct mr_process {
  pid_t pid;
  int own_group; /* signals from the terminal do not reach the child by themselves */
  int gentle;    /* as in the options */
  int asked;     /* 1 once the child got a request to stop */
  int ended;     /* 1 once it was waited for; `wait_status` holds then */
  int wait_status;
};

static const int forwarded[FORWARDED] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1};
static volatile sig_atomic_t noted[FORWARDED];       /* sent by a process */
static volatile sig_atomic_t from_kernel[FORWARDED]; /* typed at the terminal */

static void note_signal(int number, siginfo_t *info, void *context) {
  (void)context;
  for (int i = 0; i < FORWARDED; i++) {
    if (forwarded[i] != number) continue;
    if (info->si_code > 0) {
      from_kernel[i] = 1;
    } else {
      noted[i] = 1;
    }
  }
}

static int begins_with_any(const char *entry, const char *const *prefixes) {
  for (; prefixes && *prefixes; prefixes++) {
    if (strncmp(entry, *prefixes, strlen(*prefixes)) == 0) return 1;
  }
  return 0;
}

static int is_replaced(const char *entry, const char *const *set) {
  for (; set && *set; set++) {
    size_t name = strcspn(*set, "=") + 1;
    if (strncmp(entry, *set, name) == 0) return 1;
  }
  return 0;
}

/* This process's environment less `unset`, with `set` put in. The block holds pointers only. */
static mr_status make_environment(const mr_process_options *options, char ***result) {
  int64_t count = 1;
  for (char **e = environ; *e; e++) count++;
  for (const char *const *s = options->set; s && *s; s++) count++;
  void *block = NULL;
  MR_TRY(mr_memory_allocate_array(count, (int64_t)sizeof(char *), &block));
  char **entries = block;
  int64_t used = 0;
  for (char **e = environ; *e; e++) {
    if (begins_with_any(*e, options->unset) || is_replaced(*e, options->set)) continue;
    entries[used++] = *e;
  }
  /* posix_spawn takes char *const[] and writes to none of them */
  for (const char *const *s = options->set; s && *s; s++) {
    memcpy(&entries[used++], s, sizeof *s);
  }
  *result = entries;
  return MR_OK;
}

static int add_files(posix_spawn_file_actions_t *actions, const mr_process_options *options) {
  const int writing = O_WRONLY | O_CREAT | O_TRUNC;
  int failure = 0;
  if (options->input) {
    failure = posix_spawn_file_actions_addopen(actions, 0, options->input, O_RDONLY, 0);
  }
  if (!failure && options->output) {
    failure = posix_spawn_file_actions_addopen(actions, 1, options->output, writing, 0644);
  }
  if (!failure && options->errors) {
    if (options->output && strcmp(options->output, options->errors) == 0) {
      failure = posix_spawn_file_actions_adddup2(actions, 1, 2);
    } else {
      failure = posix_spawn_file_actions_addopen(actions, 2, options->errors, writing, 0644);
    }
  }
  return failure;
}

static int add_attributes(posix_spawnattr_t *attributes, int own_group) {
  sigset_t none, defaults;
  sigemptyset(&none);
  sigemptyset(&defaults);
  for (int i = 0; i < FORWARDED; i++) sigaddset(&defaults, forwarded[i]);
  sigaddset(&defaults, SIGPIPE);
  short flags = POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF;
  if (own_group) flags = (short)(flags | POSIX_SPAWN_SETPGROUP);
  int failure = posix_spawnattr_setsigmask(attributes, &none);
  if (!failure) failure = posix_spawnattr_setsigdefault(attributes, &defaults);
  if (!failure && own_group) failure = posix_spawnattr_setpgroup(attributes, 0);
  if (!failure) failure = posix_spawnattr_setflags(attributes, flags);
  return failure;
}

static int spawn(const mr_process_options *options, char **environment, mr_process *process) {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  int failure = posix_spawn_file_actions_init(&actions);
  if (failure) return failure;
  failure = posix_spawnattr_init(&attributes);
  if (failure) {
    posix_spawn_file_actions_destroy(&actions);
    return failure;
  }
  failure = add_files(&actions, options);
  if (!failure) failure = add_attributes(&attributes, process->own_group);
  if (!failure) {
    char *const *arguments;
    memcpy(&arguments, &options->arguments, sizeof arguments);
    failure =
        posix_spawnp(&process->pid, arguments[0], &actions, &attributes, arguments, environment);
  }
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  return failure;
}

mr_status mr_process_start(const mr_process_options *options, mr_process **process) {
  *process = NULL;
  char **environment = NULL;
  MR_TRY(make_environment(options, &environment));
  void *block = NULL;
  mr_status status = mr_memory_allocate((int64_t)sizeof(mr_process), &block);
  if (status == MR_OK) {
    mr_process *made = block;
    *made = (mr_process){0};
    made->own_group = options->input != NULL || !isatty(0);
    made->gentle = options->gentle;
    int failure = spawn(options, environment, made);
    if (failure) {
      mr_memory_release(made);
      status = mr_fail(MR_ERROR_ENVIRONMENT, "cannot start %s: %s", options->arguments[0],
                       strerror(failure));
    } else {
      *process = made;
    }
  }
  mr_memory_release(environment);
  return status;
}

mr_status mr_process_poll(mr_process *process, int *ended) {
  if (!process->ended) {
    pid_t got = waitpid(process->pid, &process->wait_status, WNOHANG);
    if (got < 0 && errno != EINTR) {
      return mr_fail(MR_ERROR_ENVIRONMENT, "cannot wait for process %ld: %s", (long)process->pid,
                     strerror(errno));
    }
    process->ended = got == process->pid;
  }
  *ended = process->ended;
  return MR_OK;
}

mr_status mr_process_signal(mr_process *process, int number) {
  if (process->ended) return MR_OK;
  pid_t whom = process->own_group ? -process->pid : process->pid;
  if (kill(whom, number) != 0 && errno != ESRCH) {
    return mr_fail(MR_ERROR_ENVIRONMENT, "cannot signal process %ld: %s", (long)process->pid,
                   strerror(errno));
  }
  return MR_OK;
}

/* What the child gets for a signal that this process got. */
static int handed_on(mr_process *process, int number) {
  if (number == SIGUSR1 || !process->gentle) return number;
  int again = process->asked;
  process->asked = 1;
  return again ? SIGTERM : SIGUSR1;
}

static void hand_on_signals(mr_process *process, int *stopped) {
  for (int i = 0; i < FORWARDED; i++) {
    if ((noted[i] || from_kernel[i]) && forwarded[i] != SIGUSR1) *stopped = forwarded[i];
    if (noted[i] || (from_kernel[i] && process->own_group)) {
      (void)mr_process_signal(process, handed_on(process, forwarded[i]));
    }
    noted[i] = 0;
    from_kernel[i] = 0;
  }
}

/* Waits in short sleeps, which a signal interrupts; 1 ms at first, 10 ms in the long run. */
static mr_status wait_loop(mr_process *process, double seconds, mr_process_result *result) {
  double limit = seconds > 0 ? mr_clock_seconds() + seconds : HUGE_VAL, kill_at = HUGE_VAL;
  struct timespec nap = {0, 1000000};
  int ended = 0;
  for (;;) {
    MR_TRY(mr_process_poll(process, &ended));
    hand_on_signals(process, &result->stopped);
    if (ended) return MR_OK;
    double now = mr_clock_seconds();
    if (now >= limit) {
      result->end = MR_PROCESS_LIMIT;
      limit = HUGE_VAL;
      kill_at = now + KILL_AFTER_SECONDS;
      MR_TRY(mr_process_signal(process, SIGTERM));
    } else if (now >= kill_at) {
      MR_TRY(mr_process_signal(process, SIGKILL));
    }
    nanosleep(&nap, NULL);
    if (nap.tv_nsec < 10000000) nap.tv_nsec += 1000000;
  }
}

mr_status mr_process_wait(mr_process *process, double seconds, mr_process_result *result) {
  struct sigaction action, before[FORWARDED];
  memset(&action, 0, sizeof action);
  action.sa_sigaction = note_signal;
  action.sa_flags = SA_SIGINFO;
  sigemptyset(&action.sa_mask);
  for (int i = 0; i < FORWARDED; i++) sigaction(forwarded[i], &action, &before[i]);
  *result = (mr_process_result){MR_PROCESS_EXIT, 0, 0};
  mr_status status = wait_loop(process, seconds, result);
  for (int i = 0; i < FORWARDED; i++) sigaction(forwarded[i], &before[i], NULL);
  if (status != MR_OK || result->end == MR_PROCESS_LIMIT) return status;
  if (WIFSIGNALED(process->wait_status)) {
    result->end = MR_PROCESS_SIGNAL;
    result->number = WTERMSIG(process->wait_status);
  } else {
    result->number = WEXITSTATUS(process->wait_status);
  }
  return MR_OK;
}

long mr_process_id(const mr_process *process) { return (long)process->pid; }

void mr_process_release(mr_process *process) {
  if (!process) return;
  if (!process->ended) {
    (void)mr_process_signal(process, SIGKILL);
    while (waitpid(process->pid, NULL, 0) < 0 && errno == EINTR) continue;
  }
  mr_memory_release(process);
}
