#define _GNU_SOURCE 1
#include "base/clock.h"

#include <time.h>

double mr_clock_seconds(void) {
  struct timespec now = {0, 0};
  (void)clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

const char *mr_clock_utc(char text[MR_CLOCK_TEXT]) {
  time_t now = time(NULL);
  struct tm parts;
  text[0] = '\0';
  if (gmtime_r(&now, &parts)) (void)strftime(text, MR_CLOCK_TEXT, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}
