#define _GNU_SOURCE
#include "base/stop.h"

#include <signal.h>
#include <string.h>

static volatile sig_atomic_t requested;

static void note_request(int number) { requested = number; }

void mr_stop_watch(void) {
  static const int watched[] = {SIGINT, SIGTERM, SIGUSR1};
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = note_request;
  sigemptyset(&action.sa_mask);
  for (size_t i = 0; i < sizeof watched / sizeof watched[0]; i++) {
    action.sa_flags = watched[i] == SIGUSR1 ? SA_RESTART : SA_RESTART | (int)SA_RESETHAND;
    (void)sigaction(watched[i], &action, NULL);
  }
}

int mr_stop_requested(void) { return (int)requested; }
