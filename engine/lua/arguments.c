/* Checked arguments and options tables. */
#include <string.h>

#include "lua/binding.h"

void mr_lua_define_type(lua_State *L, const char *name, const luaL_Reg *methods,
                        const luaL_Reg *metamethods) {
  if (luaL_newmetatable(L, name)) {
    luaL_setfuncs(L, metamethods, 0);
    lua_newtable(L);
    luaL_setfuncs(L, methods, 0);
    lua_setfield(L, -2, "__index");
  }
  lua_pop(L, 1);
}

mr_dtype mr_lua_check_dtype(lua_State *L, int index, int fallback) {
  if (fallback >= 0 && lua_isnoneornil(L, index)) return (mr_dtype)fallback;
  const char *name = luaL_checkstring(L, index);
  int dtype = mr_dtype_find(name);
  if (dtype < 0)
    (void)mr_lua_error(L, MR_ERROR_ARGUMENT,
                       "expected a dtype (f32, f64, bf16, i32 or i64), got '%s'", name);
  return (mr_dtype)dtype;
}

mr_shape mr_lua_check_shape(lua_State *L, int index) {
  mr_shape shape = {0};
  luaL_checktype(L, index, LUA_TTABLE);
  lua_Integer axes = luaL_len(L, index);
  if (axes > MR_MAX_AXES)
    (void)mr_lua_error(L, MR_ERROR_ARGUMENT, "a tensor has 0 to %d axes, got %lld", MR_MAX_AXES,
                       (long long)axes);
  shape.axes = (int)axes;
  for (int i = 0; i < shape.axes; i++) {
    int is_integer = 0;
    lua_geti(L, index, i + 1);
    shape.extent[i] = lua_tointegerx(L, -1, &is_integer);
    if (!is_integer)
      (void)mr_lua_error(L, MR_ERROR_ARGUMENT, "extent %d must be an integer, got %s", i + 1,
                         luaL_typename(L, -1));
    lua_pop(L, 1);
  }
  int64_t count = 0;
  MR_LUA_TRY(L, mr_shape_count(&shape, &count));
  return shape;
}

void mr_lua_push_shape(lua_State *L, const mr_shape *shape) {
  lua_createtable(L, shape->axes, 0);
  for (int i = 0; i < shape->axes; i++) {
    lua_pushinteger(L, shape->extent[i]);
    lua_seti(L, -2, i + 1);
  }
}

static int is_among(const char *key, const char *const *names) {
  for (int i = 0; names[i]; i++)
    if (strcmp(names[i], key) == 0) return 1;
  return 0;
}

static void refuse_key(lua_State *L, const char *what, const char *key, const char *const *names) {
  luaL_Buffer list;
  luaL_buffinit(L, &list);
  for (int i = 0; names[i]; i++) {
    if (i) luaL_addstring(&list, ", ");
    luaL_addstring(&list, names[i]);
  }
  luaL_pushresult(&list);
  (void)mr_lua_error(L, MR_ERROR_ARGUMENT, "%s has no option '%s'; it takes: %s", what, key,
                     lua_tostring(L, -1));
}

void mr_lua_check_keys(lua_State *L, int index, const char *what, const char *const *names) {
  if (lua_isnoneornil(L, index)) return;
  index = lua_absindex(L, index);
  if (!lua_istable(L, index))
    (void)mr_lua_error(L, MR_ERROR_ARGUMENT, "%s takes a table of options, got %s", what,
                       luaL_typename(L, index));
  lua_pushnil(L);
  while (lua_next(L, index)) {
    lua_pop(L, 1);
    lua_pushvalue(L, -1); /* a copy: converting the key itself would confuse lua_next */
    const char *key = luaL_tolstring(L, -1, NULL);
    if (!is_among(key, names)) refuse_key(L, what, key, names);
    lua_pop(L, 2);
  }
}

static int push_option(lua_State *L, int index, const char *name) {
  if (lua_isnoneornil(L, index)) {
    lua_pushnil(L);
    return LUA_TNIL;
  }
  return lua_getfield(L, index, name);
}

double mr_lua_option_number(lua_State *L, int index, const char *name, double fallback) {
  double value = fallback;
  if (push_option(L, index, name) != LUA_TNIL) {
    int is_number = 0;
    value = lua_tonumberx(L, -1, &is_number);
    if (!is_number || lua_type(L, -1) == LUA_TSTRING)
      (void)mr_lua_error(L, MR_ERROR_ARGUMENT, "%s must be a number, got %s", name,
                         luaL_typename(L, -1));
  }
  lua_pop(L, 1);
  return value;
}

int64_t mr_lua_option_integer(lua_State *L, int index, const char *name, int64_t fallback) {
  int64_t value = fallback;
  if (push_option(L, index, name) != LUA_TNIL) {
    int is_integer = 0;
    value = lua_tointegerx(L, -1, &is_integer);
    if (!is_integer)
      (void)mr_lua_error(L, MR_ERROR_ARGUMENT, "%s must be an integer, got %s", name,
                         luaL_tolstring(L, -1, NULL));
  }
  lua_pop(L, 1);
  return value;
}

int mr_lua_option_flag(lua_State *L, int index, const char *name, int fallback) {
  int value = fallback;
  if (push_option(L, index, name) != LUA_TNIL) {
    if (!lua_isboolean(L, -1))
      (void)mr_lua_error(L, MR_ERROR_ARGUMENT, "%s must be true or false, got %s", name,
                         luaL_typename(L, -1));
    value = lua_toboolean(L, -1);
  }
  lua_pop(L, 1);
  return value;
}

const char *mr_lua_option_string(lua_State *L, int index, const char *name, const char *fallback) {
  const char *value = fallback;
  if (push_option(L, index, name) != LUA_TNIL) {
    if (lua_type(L, -1) != LUA_TSTRING)
      (void)mr_lua_error(L, MR_ERROR_ARGUMENT, "%s must be a string, got %s", name,
                         luaL_typename(L, -1));
    value = lua_tostring(L, -1);
  }
  lua_pop(L, 1);
  return value;
}
