#include "comm/record.h"

#include <stdio.h>
#include <string.h>

#include "comm/transport.h"

static const char *const reductions[MR_REDUCTION_COUNT] = {"sum", "mean", "max", "min"};

int mr_reduction_find(const char *name) {
  for (int i = 0; i < MR_REDUCTION_COUNT; i++) {
    if (strcmp(reductions[i], name) == 0) return i;
  }
  return -1;
}

/* Text of a limited size that is added to; what does not fit is cut off. */
typedef struct writer {
  char *text;
  size_t size, used;
} writer;

static void put(writer *w, const char *part) {
  int length = snprintf(w->text + w->used, w->size - w->used, "%s", part);
  if (length > 0) w->used += (size_t)length;
  if (w->used >= w->size) w->used = w->size - 1;
}

static void put_number(writer *w, const char *before, long long number) {
  char part[64];
  (void)snprintf(part, sizeof part, "%s%lld", before, number);
  put(w, part);
}

const char *mr_record_text(const mr_group *group, const mr_record *record,
                           char text[MR_RECORD_TEXT]) {
  writer w = {text, MR_RECORD_TEXT, 0};
  put(&w, mr_collective_name((mr_collective)record->kind));
  if (record->reduction >= 0) {
    put(&w, " ");
    put(&w, reductions[record->reduction]);
  }
  if (record->dtype >= 0) {
    put(&w, " ");
    put(&w, mr_dtype_name((mr_dtype)record->dtype));
    put_number(&w, " x ", record->count);
  }
  if (record->kind == MR_WINDOW) {
    put_number(&w, " of ", record->count);
    put(&w, " bytes");
  }
  if (record->peer >= 0) {
    int rank = group->members[record->peer];
    put_number(&w, record->kind == MR_SEND ? " to rank " : " from rank ", rank);
  }
  if (record->tag != 0) put_number(&w, " tag ", record->tag);
  if (record->line[0]) {
    put(&w, " at ");
    put(&w, record->line);
  }
  return text;
}

int mr_record_agrees(const mr_record *a, const mr_record *b) {
  return a->kind == b->kind && a->dtype == b->dtype && a->count == b->count &&
         a->reduction == b->reduction && a->peer == b->peer && a->tag == b->tag;
}

void mr_record_settle(mr_handle *handle, const mr_record *theirs) {
  const mr_record *mine = &handle->record;
  int meet = mine->window != 0 && mine->window == theirs->window && mine->place == theirs->place;
  if (!meet) handle->window = NULL;
  if (!theirs->direct) handle->direct = 0;
}

int mr_record_meets(const mr_record *a, const mr_record *b) {
  return a->dtype == b->dtype && a->count == b->count && a->tag == b->tag;
}

static int same_words(const mr_record *a, const mr_record *b) {
  return mr_record_agrees(a, b) && strncmp(a->line, b->line, MR_LINE_BYTES) == 0;
}

/* "rank 1" or "ranks 0, 2 and 5 more": the members whose record equals that of `first`; returns
 * how many. */
static int put_ranks(writer *w, const mr_group *group, const mr_record *records,
                     const char *arrived, int first) {
  enum { LISTED = 8 };
  int count = 0;
  for (int m = first; m < group->size; m++) {
    count += arrived[m] && same_words(&records[m], &records[first]);
  }
  put(w, count > 1 ? "ranks" : "rank");
  int listed = 0;
  for (int m = first; m < group->size && listed < LISTED; m++) {
    if (!arrived[m] || !same_words(&records[m], &records[first])) continue;
    put_number(w, listed ? ", " : " ", group->members[m]);
    listed++;
  }
  if (count > listed) {
    put_number(w, " and ", count - listed);
    put(w, " more");
  }
  return count;
}

/* 1 when an earlier member has the same record. */
static int is_listed(const mr_record *records, const char *arrived, int member) {
  for (int m = 0; m < member; m++) {
    if (arrived[m] && same_words(&records[m], &records[member])) return 1;
  }
  return 0;
}

static void put_records(writer *w, const mr_group *group, const mr_record *records,
                        const char *arrived, int closing, const char *between) {
  char text[MR_RECORD_TEXT];
  int listed = 0;
  for (int m = 0; m < group->size; m++) {
    if (!arrived[m] || is_listed(records, arrived, m)) continue;
    if ((records[m].kind == MR_CLOSE) != closing) continue;
    if (listed++) put(w, closing ? ", " : between);
    int count = put_ranks(w, group, records, arrived, m);
    if (closing) continue;
    put(w, between[0] != ',' ? " " : count > 1 ? " wait for " : " waits for ");
    put(w, mr_record_text(group, &records[m], text));
  }
}

static void put_missing(writer *w, const mr_group *group, const char *arrived) {
  for (int m = 0; m < group->size; m++) {
    if (arrived[m]) continue;
    put_number(w, "; rank ", group->members[m]);
    put(w, " has not come");
  }
}

mr_status mr_record_fail(const mr_group *group, int64_t sequence, const mr_record *records,
                         const char *arrived) {
  char report[MR_REPORT_TEXT];
  writer w = {report, sizeof report, 0};
  int closing = 0;
  for (int m = 0; m < group->size; m++) {
    closing += arrived[m] && records[m].kind == MR_CLOSE;
  }
  if (closing) {
    put_records(&w, group, records, arrived, 1, ", ");
    put(&w, closing > 1 ? " have finished while " : " has finished while ");
    put_records(&w, group, records, arrived, 0, ", ");
  } else {
    put_number(&w, "ranks disagree at operation ", (long long)sequence + 1);
    put(&w, " of ");
    put(&w, group->name);
    put(&w, ": ");
    put_records(&w, group, records, arrived, 0, "; ");
  }
  put_missing(&w, group, arrived);
  return mr_fail(MR_ERROR_RANKS, "%s", report);
}

mr_status mr_record_fail_pair(const mr_group *group, int64_t sequence, const mr_record *mine,
                              const mr_record *theirs) {
  char sent[MR_RECORD_TEXT], received[MR_RECORD_TEXT];
  const mr_record *send = mine->kind == MR_SEND ? mine : theirs;
  const mr_record *receive = mine->kind == MR_SEND ? theirs : mine;
  int from = group->members[receive->peer];
  int to = group->members[send->peer];
  return mr_fail(MR_ERROR_RANKS,
                 "ranks disagree at message %lld from rank %d to rank %d of %s: rank %d %s; "
                 "rank %d %s",
                 (long long)sequence + 1, from, to, group->name, from,
                 mr_record_text(group, send, sent), to, mr_record_text(group, receive, received));
}
