#include "lua/text.h"

#include <string.h>

#include "lua/binding.h"

const char *mr_lua_check_text(lua_State *L, int index, const char *what) {
  size_t bytes = 0;
  if (lua_type(L, index) != LUA_TSTRING)
    (void)mr_lua_error(L, MR_ERROR_ARGUMENT, "expected %s, got %s", what, luaL_typename(L, index));
  const char *text = lua_tolstring(L, index, &bytes);
  if (strlen(text) != bytes)
    (void)mr_lua_error(L, MR_ERROR_ARGUMENT, "expected %s without NUL bytes, got '%s\\0...'", what,
                       text);
  return text;
}
