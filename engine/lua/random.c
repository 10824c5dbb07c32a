/* core.normal and core.uniform: counter-based fills; core.stream: a stream of its own. */
#include "tensor/random.h"

#include "lua/binding.h"

static const char type_name[] = "marea.stream";

static mr_tensor *push_zeros(lua_State *L, int options) {
  mr_shape shape = mr_lua_check_shape(L, 1);
  const char *name = mr_lua_option_string(L, options, "dtype", "f32");
  int dtype = mr_dtype_find(name);
  if (dtype < 0 || !mr_dtype_is_real((mr_dtype)dtype))
    (void)mr_lua_error(L, MR_ERROR_ARGUMENT, "random numbers are f32 or f64, not '%s'", name);
  mr_tensor **slot = mr_lua_push_tensor_shell(L);
  MR_LUA_TRY(L, mr_tensor_new(mr_lua_context(L)->device, (mr_dtype)dtype, &shape, slot));
  mr_lua_tensor_made(L, *slot);
  return *slot;
}

static int make_normal(lua_State *L) {
  static const char *const keys[] = {"mean", "std", "seed", "stream", "dtype", NULL};
  mr_lua_check_keys(L, 2, "normal", keys);
  mr_tensor *tensor = push_zeros(L, 2);
  MR_LUA_TRY(L, mr_tensor_fill_normal(tensor, mr_lua_option_number(L, 2, "mean", 0),
                                      mr_lua_option_number(L, 2, "std", 1),
                                      (uint64_t)mr_lua_option_integer(L, 2, "seed", 0),
                                      (uint64_t)mr_lua_option_integer(L, 2, "stream", 0)));
  return 1;
}

static int make_uniform(lua_State *L) {
  static const char *const keys[] = {"low", "high", "seed", "stream", "dtype", NULL};
  mr_lua_check_keys(L, 2, "uniform", keys);
  mr_tensor *tensor = push_zeros(L, 2);
  MR_LUA_TRY(L, mr_tensor_fill_uniform(tensor, mr_lua_option_number(L, 2, "low", 0),
                                       mr_lua_option_number(L, 2, "high", 1),
                                       (uint64_t)mr_lua_option_integer(L, 2, "seed", 0),
                                       (uint64_t)mr_lua_option_integer(L, 2, "stream", 0)));
  return 1;
}

static mr_stream *check_stream(lua_State *L) { return luaL_checkudata(L, 1, type_name); }

/* stream(seed, id): seed and id at least 0. */
static int make_stream(lua_State *L) {
  lua_Integer seed = luaL_checkinteger(L, 1), id = luaL_checkinteger(L, 2);
  luaL_argcheck(L, seed >= 0, 1, "the seed must be at least 0");
  luaL_argcheck(L, id >= 0, 2, "the number of the stream must be at least 0");
  mr_stream *stream = lua_newuserdatauv(L, sizeof(mr_stream), 0);
  *stream = mr_stream_begin((uint64_t)seed, (uint64_t)id);
  luaL_setmetatable(L, type_name);
  return 1;
}

static int draw_next(lua_State *L) {
  lua_pushinteger(L, (lua_Integer)mr_stream_next(check_stream(L)));
  return 1;
}

static int draw_uniform(lua_State *L) {
  lua_pushnumber(L, mr_stream_uniform(check_stream(L)));
  return 1;
}

static int draw_normal(lua_State *L) {
  lua_pushnumber(L, mr_stream_normal(check_stream(L)));
  return 1;
}

/* integer(n): 1 .. n. */
static int draw_integer(lua_State *L) {
  lua_Integer n = luaL_checkinteger(L, 2);
  luaL_argcheck(L, n >= 1, 2, "n must be at least 1");
  lua_pushinteger(L, 1 + (lua_Integer)mr_stream_integer(check_stream(L), n));
  return 1;
}

static int read_state(lua_State *L) {
  char text[MR_STREAM_TEXT];
  mr_stream_save(check_stream(L), text);
  lua_pushstring(L, text);
  return 1;
}

static int restore(lua_State *L) {
  MR_LUA_TRY(L, mr_stream_restore(check_stream(L), luaL_checkstring(L, 2)));
  return 0;
}

void mr_lua_open_random(lua_State *L) {
  static const luaL_Reg methods[] = {{"next", draw_next},
                                     {"uniform", draw_uniform},
                                     {"normal", draw_normal},
                                     {"integer", draw_integer},
                                     {"state", read_state},
                                     {"restore", restore},
                                     {NULL, NULL}};
  static const luaL_Reg no_metamethods[] = {{NULL, NULL}};
  static const luaL_Reg functions[] = {
      {"normal", make_normal}, {"uniform", make_uniform}, {"stream", make_stream}, {NULL, NULL}};
  mr_lua_define_type(L, type_name, methods, no_metamethods);
  luaL_setfuncs(L, functions, 0);
}
