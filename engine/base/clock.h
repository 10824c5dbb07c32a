/* Time: a clock for intervals and one for people. */
#ifndef MR_BASE_CLOCK_H
#define MR_BASE_CLOCK_H

enum { MR_CLOCK_TEXT = 32 };

/* Seconds since some fixed moment; never goes back. */
double mr_clock_seconds(void);

/* Now in UTC as "2025-01-31T12:00:00Z" into text; returns text. */
const char *mr_clock_utc(char text[MR_CLOCK_TEXT]);

#endif
