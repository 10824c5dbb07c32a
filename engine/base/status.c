#include "base/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { MESSAGE_BYTES = 2048 };
static _Thread_local char message[MESSAGE_BYTES];

mr_status(mr_fail)(mr_status status, const char *format, ...) {
  char text[MESSAGE_BYTES];
  va_list arguments;
  va_start(arguments, format);
  (void)vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  memcpy(message, text, sizeof message);
  return status;
}

mr_status mr_fail_within(mr_status status, const char *format, ...) {
  char prefix[MESSAGE_BYTES], inner[MESSAGE_BYTES];
  va_list arguments;
  va_start(arguments, format);
  int length = vsnprintf(prefix, sizeof prefix, format, arguments);
  va_end(arguments);
  if (length < 0) return status;
  if (length > MESSAGE_BYTES / 2) prefix[MESSAGE_BYTES / 2] = '\0';
  memcpy(inner, message, sizeof inner);
  size_t used = strlen(prefix);
  memcpy(message, prefix, used);
  int room = (int)(MESSAGE_BYTES - used) - 3;
  (void)snprintf(message + used, MESSAGE_BYTES - used, ": %.*s", room, inner);
  return status;
}

const char *mr_status_message(void) { return message; }

int mr_status_exit_code(mr_status status) {
  switch (status) {
    case MR_OK:
      return 0;
    case MR_ERROR_IO:
    case MR_ERROR_MEMORY:
    case MR_ERROR_ARGUMENT:
      return 1;
    case MR_ERROR_CONTENT:
      return 2;
    case MR_ERROR_DAMAGED:
      return 3;
    case MR_ERROR_ENVIRONMENT:
      return 4;
    case MR_ERROR_WINDOW:
      return 5;
    case MR_ERROR_RANKS:
    case MR_ERROR_PEER:
      return 6;
  }
  return 1;
}
