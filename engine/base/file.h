/* Files: read whole, written so that a name never shows half a content, appended to line by
 * line, mapped.
 *
 * Invariant of writing: contents are built under a hidden temporary name in the same folder,
 * synced, and renamed; whatever fails, the name holds its old content or its new one, whole, and
 * no temporary file stays behind (one can after a killed process: ".NAME.partial-PID").
 * Every error is MR_ERROR_IO with the path and the system's reason; a full disk says "disk full".
 */
#ifndef MR_BASE_FILE_H
#define MR_BASE_FILE_H

#include <stdint.h>

#include "base/status.h"

/* Sets *text to the file's content followed by one NUL that is not counted in *bytes.
 * Release with mr_memory_release. Errors: MR_ERROR_IO, MR_ERROR_MEMORY. */
mr_status mr_file_read(const char *path, char **text, int64_t *bytes);

/* Replaces the content of `path` as a whole. */
mr_status mr_file_write(const char *path, const void *data, int64_t bytes);

/* The same in pieces: new, add ..., commit, release. */
typedef struct mr_file_writer mr_file_writer;
mr_status mr_file_writer_new(const char *path, mr_file_writer **writer);
mr_status mr_file_writer_add(mr_file_writer *writer, const void *data, int64_t bytes);
/* Syncs, renames to the final name and syncs the folder. Once only. */
mr_status mr_file_writer_commit(mr_file_writer *writer);
/* Ends the writer; what was not committed is removed. NULL does nothing. */
void mr_file_writer_release(mr_file_writer *writer);

/* Files of lines, for one writer at a time. A line is one write(2): a killed process loses at
 * most its last one. Opening creates the file and cuts off a last line without its end. */
typedef struct mr_appender mr_appender;
mr_status mr_appender_open(const char *path, mr_appender **appender);
/* Adds `line` and a newline. On failure nothing of it stays. A newline inside is
 * MR_ERROR_ARGUMENT. */
mr_status mr_appender_write(mr_appender *appender, const char *line, int64_t bytes);
/* Waits until all lines are on the disk. */
mr_status mr_appender_sync(mr_appender *appender);
/* Closes. NULL does nothing. */
void mr_appender_release(mr_appender *appender);

/* 1 when something of that name exists (links are followed), else 0. */
int mr_file_exists(const char *path);

/* The length of a regular file (links are followed); -1 for anything else and where nothing is. */
int64_t mr_file_bytes(const char *path);

/* 1 when the name itself is a symbolic link, to whatever, else 0. */
int mr_file_is_link(const char *path);

/* Removes one file or link; a file that is not there is MR_ERROR_IO. */
mr_status mr_file_remove(const char *path);

/* Renames a file or folder within one file system; MR_ERROR_IO when `to` exists. */
mr_status mr_file_move(const char *from, const char *to);

/* A file's content in memory, read-only, shared and counted. The file must not shrink while it is
 * mapped (files of marea are replaced by renaming, which leaves a mapping as it was). */
typedef struct mr_mapping mr_mapping;
mr_status mr_mapping_open(const char *path, mr_mapping **mapping);
mr_mapping *mr_mapping_retain(mr_mapping *mapping);
/* NULL does nothing. */
void mr_mapping_release(mr_mapping *mapping);
const void *mr_mapping_data(const mr_mapping *mapping); /* never NULL */
int64_t mr_mapping_bytes(const mr_mapping *mapping);

/* For specs: the n-th system call of the file layer from now (1 = the next) fails once as on a
 * full disk, without being made; 0 turns the hook off. */
void mr_file_fail_at(int64_t n);

/* For specs: system calls of the file layer so far. */
int64_t mr_file_calls(void);

#endif
