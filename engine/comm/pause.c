#define _GNU_SOURCE 1
#include "comm/pause.h"

#include <sched.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

enum { BUSY_TURNS = 200, CLOCK_TURNS = 16 };
static const double LOOK_SECONDS = 0.02;
static const int SLEEP_AFTER_LOOKS = 5; /* a tenth of a second */

int mr_pause_turn(mr_pause *pause) {
  if (++pause->turns <= BUSY_TURNS && !pause->crowded) return 0;
  if (pause->looks < SLEEP_AFTER_LOOKS) {
    (void)sched_yield();
    if (pause->turns % CLOCK_TURNS != 0) return 0;
  } else {
    struct timespec nap = {0, 100000};
    (void)nanosleep(&nap, NULL);
  }
  double now = mr_clock_seconds();
  if (pause->next_look <= 0) pause->next_look = now + LOOK_SECONDS;
  if (now < pause->next_look) return 0;
  pause->next_look = now + LOOK_SECONDS;
  pause->looks++;
  return 1;
}

int mr_pause_is_crowded(int ranks) { return sysconf(_SC_NPROCESSORS_ONLN) < ranks; }
