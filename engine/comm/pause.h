/* How a rank waits: it turns a few times at once, then gives its core away at every turn, since
 * ranks may share cores, and sleeps in the long run. */
#ifndef MR_COMM_PAUSE_H
#define MR_COMM_PAUSE_H

typedef struct mr_pause {
  int crowded; /* the host has fewer cores than ranks: no turn without giving the core away */
  int turns;
  int looks;        /* how often mr_pause_turn returned 1 */
  double next_look; /* 0 before the clock was read first */
} mr_pause;

/* One turn of a waiting loop; start from zeros but for `crowded`. Returns 1 every 20 milliseconds
 * or so: time to look whether the wait can end. */
int mr_pause_turn(mr_pause *pause);

/* 1 when `ranks` processes are more than the host has cores. */
int mr_pause_is_crowded(int ranks);

#endif
