/* Faults: error values that carry a message, an exit code and the recipe's line. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "lua/binding.h"

static const char fault_type[] = "marea.fault";
static const char library_key[] = "marea.library";

void mr_lua_set_library(lua_State *L, const char *prefix) {
  lua_pushstring(L, prefix);
  lua_setfield(L, LUA_REGISTRYINDEX, library_key);
}

static int belongs_to_library(lua_State *L, const char *source) {
  int inside = 0;
  if (lua_getfield(L, LUA_REGISTRYINDEX, library_key) == LUA_TSTRING) {
    const char *prefix = lua_tostring(L, -1);
    inside = strncmp(source, prefix, strlen(prefix)) == 0;
  }
  lua_pop(L, 1);
  return inside;
}

void mr_lua_line(lua_State *L, char *text, size_t bytes) {
  lua_Debug level;
  text[0] = '\0';
  for (int i = 0; lua_getstack(L, i, &level); i++) {
    lua_getinfo(L, "Sl", &level);
    if (level.currentline <= 0 || belongs_to_library(L, level.source)) continue;
    (void)snprintf(text, bytes, "%s:%d", level.short_src, level.currentline);
    return;
  }
}

static int fault_text(lua_State *L) {
  lua_getfield(L, 1, "message");
  return 1;
}

static void push_metatable(lua_State *L) {
  if (!luaL_newmetatable(L, fault_type)) return;
  lua_pushcfunction(L, fault_text);
  lua_setfield(L, -2, "__tostring");
}

int mr_lua_raise(lua_State *L, mr_status status) {
  char line[LUA_IDSIZE + 32];
  mr_lua_line(L, line, sizeof line);
  lua_createtable(L, 0, 2);
  if (line[0])
    lua_pushfstring(L, "%s: %s", line, mr_status_message());
  else
    lua_pushstring(L, mr_status_message());
  lua_setfield(L, -2, "message");
  lua_pushinteger(L, mr_status_exit_code(status));
  lua_setfield(L, -2, "code");
  lua_pushboolean(L, status == MR_ERROR_PEER);
  lua_setfield(L, -2, "peer");
  push_metatable(L);
  lua_setmetatable(L, -2);
  return lua_error(L);
}

int mr_lua_error(lua_State *L, mr_status status, const char *format, ...) {
  char text[1024];
  va_list arguments;
  va_start(arguments, format);
  (void)vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  return mr_lua_raise(L, mr_fail(status, "%s", text));
}

static int set_library(lua_State *L) {
  mr_lua_set_library(L, luaL_checkstring(L, 1));
  return 0;
}

static int recipe_line(lua_State *L) {
  char line[LUA_IDSIZE + 32];
  mr_lua_line(L, line, sizeof line);
  lua_pushstring(L, line);
  return 1;
}

void mr_lua_open_fault(lua_State *L) {
  static const luaL_Reg functions[] = {
      {"set_library", set_library}, {"recipe_line", recipe_line}, {NULL, NULL}};
  luaL_setfuncs(L, functions, 0);
  push_metatable(L);
  lua_setfield(L, -2, "fault_metatable");
}
