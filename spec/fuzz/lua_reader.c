/* Feeds arbitrary bytes to a reader of the Lua library: the function of readers.lua that the
 * variable MAREA_READER names. A fault is a refusal, as a reader should refuse; any other error is
 * a finding, and so are a crash, a hang, and memory without bound.
 *
 * The fuzzer is guided by the lines of Lua that run: each counts in a table that it reads. */
#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "lua/binding.h"

int LLVMFuzzerInitialize(int *count, char ***arguments);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { LINES = 1 << 14, RUNS_BETWEEN_COLLECTIONS = 64 };

__attribute__((section("__libfuzzer_extra_counters"))) static uint8_t lines[LINES];

static lua_State *L;
static int reader = LUA_NOREF, runs;

static void count_line(lua_State *state, lua_Debug *activation) {
  (void)lua_getinfo(state, "S", activation);
  uint32_t hash = 2166136261u ^ (uint32_t)activation->currentline * 16777619u;
  for (const char *c = activation->source; *c; c++) hash = (hash ^ (uint8_t)*c) * 16777619u;
  uint8_t *line = &lines[(hash ^ hash >> 16) % LINES];
  if (*line < UINT8_MAX) (*line)++;
}

static int is_fault(lua_State *state, int index) {
  if (!lua_getmetatable(state, index)) return 0;
  lua_getfield(state, LUA_REGISTRYINDEX, "marea.fault");
  int same = lua_rawequal(state, -1, -2);
  lua_pop(state, 2);
  return same;
}

/* Leaves faults as they are, and adds the stack to anything else. */
static int add_stack(lua_State *state) {
  if (is_fault(state, 1)) return 1;
  luaL_traceback(state, state, luaL_tolstring(state, 1, NULL), 1);
  return 1;
}

static void stop(const char *what) {
  (void)fprintf(stderr, "%s: %s\n", what, lua_tostring(L, -1));
  abort();
}

static const char *variable(const char *name) {
  const char *value = getenv(name);
  if (value) return value;
  (void)fprintf(stderr, "%s is not set\n", name);
  exit(2);
}

static void open_library(void) {
  static const char *const library = MR_FUZZ_ROOT "/lua";
  luaL_openlibs(L);
  luaL_requiref(L, "marea.core", luaopen_marea_core, 0);
  lua_pop(L, 1);
  lua_getglobal(L, "package");
  lua_getfield(L, -1, "path");
  lua_pushfstring(L, "%s/?.lua;%s/?/init.lua;%s/?.lua;%s", library, library, MR_FUZZ_ROOT,
                  lua_tostring(L, -1));
  lua_setfield(L, -3, "path");
  lua_settop(L, 0);
  lua_pushfstring(L, "@%s/marea/", library);
  mr_lua_set_library(L, lua_tostring(L, -1));
  lua_settop(L, 0);
}

int LLVMFuzzerInitialize(int *count, char ***arguments) {
  (void)count;
  (void)arguments;
  const char *name = variable("MAREA_READER"), *folder = variable("MAREA_FUZZ_FOLDER");
  L = luaL_newstate();
  if (!L) exit(2);
  open_library();
  if (luaL_dofile(L, MR_FUZZ_ROOT "/spec/fuzz/readers.lua") != LUA_OK) stop("readers.lua");
  if (lua_getfield(L, -1, name) != LUA_TFUNCTION) {
    (void)fprintf(stderr, "there is no reader %s\n", name);
    exit(2);
  }
  lua_pushstring(L, folder);
  if (lua_pcall(L, 1, 1, 0) != LUA_OK) stop(name);
  reader = luaL_ref(L, LUA_REGISTRYINDEX);
  lua_settop(L, 0);
  lua_sethook(L, count_line, LUA_MASKLINE, 0);
  return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  lua_pushcfunction(L, add_stack);
  (void)lua_rawgeti(L, LUA_REGISTRYINDEX, reader);
  lua_pushlstring(L, (const char *)data, size);
  if (lua_pcall(L, 1, 0, 1) != LUA_OK && !is_fault(L, -1)) stop("finding");
  lua_settop(L, 0);
  if (++runs % RUNS_BETWEEN_COLLECTIONS == 0) (void)lua_gc(L, LUA_GCCOLLECT);
  return 0;
}
