/* The program: a Lua state with marea.core built in, running lua/marea/cli/main.lua. */
#define _GNU_SOURCE
#include <lauxlib.h>
#include <limits.h>
#include <lua.h>
#include <lualib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "lua/binding.h"

enum { EXIT_LUA = 1, EXIT_ENVIRONMENT = 4 };

/* The folder with marea/init.lua: under share/ when installed, beside build/ in a checkout (also
 * for build/asan/ and the like). That under share/ comes first, so that an installed program has
 * its own library, whatever folder named lua lies beside its prefix. */
static int find_library(char folder[PATH_MAX]) {
  static const char *const places[] = {"/../share/marea/lua", "/../../lua", "/../../../lua"};
  char program[PATH_MAX], probe[PATH_MAX + 64];
  ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
  if (length <= 0) return 0;
  program[length] = '\0';
  char *slash = strrchr(program, '/');
  if (!slash) return 0;
  *slash = '\0';
  for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
    (void)snprintf(probe, sizeof probe, "%s%s/marea/init.lua", program, places[i]);
    if (access(probe, R_OK) != 0) continue;
    (void)snprintf(probe, sizeof probe, "%s%s", program, places[i]);
    return realpath(probe, folder) != NULL;
  }
  return 0;
}

static void set_paths(lua_State *L, const char *folder) {
  lua_getglobal(L, "package");
  lua_getfield(L, -1, "path");
  const char *path = lua_tostring(L, -1);
  lua_pushfstring(L, "%s/?.lua;%s/?/init.lua;%s", folder, folder, path);
  lua_setfield(L, -3, "path");
  lua_pop(L, 1);
  lua_getfield(L, -1, "preload");
  lua_pushcfunction(L, luaopen_marea_core);
  lua_setfield(L, -2, "marea.core");
  lua_pop(L, 2);
  lua_pushfstring(L, "@%s/marea/", folder);
  mr_lua_set_library(L, lua_tostring(L, -1));
  lua_pop(L, 1);
}

static int with_traceback(lua_State *L) {
  if (lua_type(L, 1) == LUA_TSTRING)
    luaL_traceback(L, L, lua_tostring(L, 1), 1);
  else
    luaL_tolstring(L, 1, NULL);
  return 1;
}

/* cli/main.lua turns every error into a message and a code; what still arrives here is a fault of
 * marea itself. Arguments: the folder, argc, argv. */
static int run(lua_State *L) {
  const char *folder = lua_touserdata(L, 1);
  int count = (int)lua_tointeger(L, 2);
  char **arguments = lua_touserdata(L, 3);
  luaL_openlibs(L);
  set_paths(L, folder);
  lua_warning(L, "@on", 0);
  lua_getglobal(L, "require");
  lua_pushliteral(L, "marea.cli.main");
  lua_call(L, 1, 1);
  lua_getfield(L, -1, "run");
  lua_createtable(L, count, 0);
  for (int i = 1; i < count; i++) {
    lua_pushstring(L, arguments[i]);
    lua_seti(L, -2, i);
  }
  lua_call(L, 1, 1);
  return 1;
}

/* In debug builds a program that ends well must have given all its memory back. Leaks in MPI's own
 * modules hide those of ours from the leak sanitizer, so ours are counted. */
static int check_memory(int code) {
#ifdef MR_DEBUG
  long long kept = (long long)mr_memory_used().live_bytes;
  if (code == 0 && kept != 0) {
    (void)fprintf(stderr, "marea: %lld bytes were never released\n", kept);
    return EXIT_LUA;
  }
#endif
  return code;
}

int main(int count, char **arguments) {
  char folder[PATH_MAX];
  if (!find_library(folder)) {
    (void)fprintf(stderr,
                  "marea: its Lua library was found neither beside build/ nor under "
                  "share/marea\n");
    return EXIT_ENVIRONMENT;
  }
  lua_State *L = luaL_newstate();
  if (!L) {
    (void)fprintf(stderr, "marea: no memory for a Lua state\n");
    return EXIT_LUA;
  }
  lua_pushcfunction(L, with_traceback);
  lua_pushcfunction(L, run);
  lua_pushlightuserdata(L, folder);
  lua_pushinteger(L, count);
  lua_pushlightuserdata(L, arguments);
  int code = EXIT_LUA;
  if (lua_pcall(L, 3, 1, 1) == LUA_OK)
    code = (int)lua_tointeger(L, -1);
  else
    (void)fprintf(stderr, "marea: %s\n", lua_tostring(L, -1));
  lua_close(L);
  return check_memory(code);
}
