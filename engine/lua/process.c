/* The userdata `process`: child programs for launch, test, demo and the specs.
 *
 * core.process.start{arguments =, input =, output =, errors =, set =, unset =} -> process
 * core.process.program() -> path of this program; core.process.cores() -> cores it may use;
 * core.process.host() -> name of this machine
 * core.process.watch_stop() notes requests to stop from now on, and
 * core.process.stop_requested() -> the signal, or nil
 * core.seconds() -> seconds since some fixed moment, for intervals
 * process:wait(seconds?) -> "exit", code | "signal", number | "limit", 0; and the signal that asked
 * this process to stop meanwhile, or nil. process:ended(), process:signal(number), process:id(). */
#define _GNU_SOURCE
#include "base/process.h"

#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/stop.h"
#include "lua/binding.h"

static const char type_name[] = "marea.process";

typedef struct box {
  mr_process *process;
} box;

static mr_process *check_process(lua_State *L) {
  box *held = luaL_checkudata(L, 1, type_name);
  if (!held->process) (void)mr_lua_error(L, MR_ERROR_ARGUMENT, "the process was closed");
  return held->process;
}

static int collect(lua_State *L) {
  box *held = luaL_checkudata(L, 1, type_name);
  mr_process *process = held->process;
  held->process = NULL;
  mr_process_release(process);
  return 0;
}

/* Pushes a block of `count` + 1 pointers, the last NULL, that lives as long as it is on the stack.
 */
static const char **push_pointers(lua_State *L, lua_Integer count) {
  const char **list = lua_newuserdatauv(L, (size_t)(count + 1) * sizeof *list, 0);
  for (lua_Integer i = 0; i <= count; i++) list[i] = NULL;
  return list;
}

/* The strings of the list options[name], which keeps them; pushes two values. NULL when absent. */
static const char *const *push_list(lua_State *L, int options, const char *name) {
  if (lua_getfield(L, options, name) == LUA_TNIL) {
    lua_pushnil(L);
    return NULL;
  }
  luaL_argexpected(L, lua_istable(L, -1), options, "a list of strings");
  lua_Integer count = luaL_len(L, -1);
  const char **list = push_pointers(L, count);
  for (lua_Integer i = 0; i < count; i++) {
    if (lua_geti(L, -2, i + 1) != LUA_TSTRING)
      (void)mr_lua_error(L, MR_ERROR_ARGUMENT, "%s must be a list of strings; item %lld is a %s",
                         name, (long long)i + 1, luaL_typename(L, -1));
    list[i] = lua_tostring(L, -1);
    lua_pop(L, 1);
  }
  return list;
}

/* "NAME=value" for each pair of the table options[name]; pushes three values. */
static const char *const *push_assignments(lua_State *L, int options, const char *name) {
  if (lua_getfield(L, options, name) == LUA_TNIL) {
    lua_pushnil(L);
    lua_pushnil(L);
    return NULL;
  }
  int pairs = lua_gettop(L);
  lua_Integer count = 0;
  lua_newtable(L);
  for (lua_pushnil(L); lua_next(L, pairs); lua_pop(L, 1)) {
    if (lua_type(L, -2) != LUA_TSTRING || lua_type(L, -1) != LUA_TSTRING)
      (void)mr_lua_error(L, MR_ERROR_ARGUMENT, "%s must be a table of strings by name", name);
    lua_pushfstring(L, "%s=%s", lua_tostring(L, -2), lua_tostring(L, -1));
    lua_seti(L, pairs + 1, ++count);
  }
  const char **list = push_pointers(L, count);
  for (lua_Integer i = 0; i < count; i++) {
    lua_geti(L, pairs + 1, i + 1);
    list[i] = lua_tostring(L, -1);
    lua_pop(L, 1);
  }
  return list;
}

static int start(lua_State *L) {
  static const char *const names[] = {"arguments", "input", "output", "errors",
                                      "set",       "unset", "gentle", NULL};
  mr_lua_check_keys(L, 1, "process.start", names);
  mr_process_options options = {0};
  options.arguments = push_list(L, 1, "arguments");
  if (!options.arguments || !options.arguments[0])
    return mr_lua_error(L, MR_ERROR_ARGUMENT, "process.start needs arguments");
  options.unset = push_list(L, 1, "unset");
  options.set = push_assignments(L, 1, "set");
  options.input = mr_lua_option_string(L, 1, "input", NULL);
  options.output = mr_lua_option_string(L, 1, "output", NULL);
  options.errors = mr_lua_option_string(L, 1, "errors", NULL);
  options.gentle = mr_lua_option_flag(L, 1, "gentle", 0);
  box *shell = lua_newuserdatauv(L, sizeof(box), 0);
  shell->process = NULL;
  luaL_setmetatable(L, type_name);
  MR_LUA_TRY(L, mr_process_start(&options, &shell->process));
  return 1;
}

static int wait_for(lua_State *L) {
  static const char *const ends[] = {"exit", "signal", "limit"};
  mr_process *process = check_process(L);
  double seconds = luaL_optnumber(L, 2, 0);
  mr_process_result result;
  MR_LUA_TRY(L, mr_process_wait(process, seconds, &result));
  lua_pushstring(L, ends[result.end]);
  lua_pushinteger(L, result.number);
  if (!result.stopped) return 2;
  lua_pushinteger(L, result.stopped);
  return 3;
}

static int has_ended(lua_State *L) {
  int ended = 0;
  MR_LUA_TRY(L, mr_process_poll(check_process(L), &ended));
  lua_pushboolean(L, ended);
  return 1;
}

static int send_signal(lua_State *L) {
  mr_process *process = check_process(L);
  MR_LUA_TRY(L, mr_process_signal(process, (int)luaL_checkinteger(L, 2)));
  return 0;
}

static int id(lua_State *L) {
  lua_pushinteger(L, mr_process_id(check_process(L)));
  return 1;
}

static int program(lua_State *L) {
  char path[PATH_MAX];
  ssize_t bytes = readlink("/proc/self/exe", path, sizeof path);
  if (bytes <= 0 || (size_t)bytes == sizeof path) return 0;
  lua_pushlstring(L, path, (size_t)bytes);
  return 1;
}

/* is_terminal(descriptor): 0 input, 1 output, 2 errors. */
static int is_terminal(lua_State *L) {
  lua_pushboolean(L, isatty((int)luaL_checkinteger(L, 1)));
  return 1;
}

/* terminal_width(descriptor) -> columns, 80 where the terminal does not say; nil: no terminal. */
static int terminal_width(lua_State *L) {
  int descriptor = (int)luaL_checkinteger(L, 1);
  struct winsize size = {0};
  if (!isatty(descriptor)) return 0;
  if (ioctl(descriptor, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) size.ws_col = 80;
  lua_pushinteger(L, size.ws_col);
  return 1;
}

/* The affinity mask where the system has one, as taskset and containers set it. */
static int cores(lua_State *L) {
  long count = sysconf(_SC_NPROCESSORS_ONLN);
#ifdef __linux__
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) == 0) count = CPU_COUNT(&allowed);
#endif
  lua_pushinteger(L, count > 0 ? count : 1);
  return 1;
}

static int host(lua_State *L) {
  char name[256] = "";
  (void)gethostname(name, sizeof name - 1);
  lua_pushstring(L, name);
  return 1;
}

/* is_running(id): whether this host has a process of that id, whoever owns it. */
static int is_running(lua_State *L) {
  lua_Integer number = luaL_checkinteger(L, 1);
  luaL_argcheck(L, number > 0 && number <= INT_MAX, 1, "expected the id of a process");
  lua_pushboolean(L, kill((pid_t)number, 0) == 0 || errno != ESRCH);
  return 1;
}

static int watch_stop(lua_State *L) {
  (void)L;
  mr_stop_watch();
  return 0;
}

static int stop_requested(lua_State *L) {
  if (mr_stop_requested() == 0) return 0;
  lua_pushinteger(L, mr_stop_requested());
  return 1;
}

static int seconds(lua_State *L) {
  lua_pushnumber(L, mr_clock_seconds());
  return 1;
}

void mr_lua_open_process(lua_State *L) {
  static const luaL_Reg methods[] = {
      {"wait", wait_for}, {"ended", has_ended}, {"signal", send_signal}, {"id", id}, {NULL, NULL}};
  static const luaL_Reg metamethods[] = {{"__gc", collect}, {"__close", collect}, {NULL, NULL}};
  static const luaL_Reg functions[] = {{"start", start},
                                       {"program", program},
                                       {"cores", cores},
                                       {"is_terminal", is_terminal},
                                       {"terminal_width", terminal_width},
                                       {"host", host},
                                       {"is_running", is_running},
                                       {"watch_stop", watch_stop},
                                       {"stop_requested", stop_requested},
                                       {NULL, NULL}};
  mr_lua_define_type(L, type_name, methods, metamethods);
  luaL_newlib(L, functions);
  lua_setfield(L, -2, "process");
  lua_pushcfunction(L, seconds);
  lua_setfield(L, -2, "seconds");
}
