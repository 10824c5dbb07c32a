/* Strings that cross from Lua to C: C ends them at a NUL, so one inside is refused. */
#ifndef MR_LUA_TEXT_H
#define MR_LUA_TEXT_H

#include <lua.h>

/* The string at `index`, without NUL bytes; `what` names it in the message ("a path"). Borrowed.
 * Numbers are not taken for strings. */
const char *mr_lua_check_text(lua_State *L, int index, const char *what);

#endif
