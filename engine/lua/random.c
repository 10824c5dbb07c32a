/* Random tensors, and the userdata `stream`. */
#include "tensor/random.h"

#include "kernels/philox.h"
#include "lua/binding.h"

static const char type_name[] = "marea.stream";

/* --- fills --- */

typedef mr_status (*fill_function)(mr_tensor *tensor, double a, double b, uint64_t seed,
                                   uint64_t stream);

/* Seeds and numbers of streams are at least 0. */
static uint64_t check_number(lua_State *L, const char *what, const char *name, lua_Integer value) {
  if (value < 0)
    (void)mr_lua_error(L, MR_ERROR_ARGUMENT, "%s: %s must be at least 0, got %lld", what, name,
                       (long long)value);
  return (uint64_t)value;
}

static uint64_t required_seed(lua_State *L, int options, const char *what) {
  int given = 0;
  if (lua_istable(L, options)) {
    given = lua_getfield(L, options, "seed") != LUA_TNIL;
    lua_pop(L, 1);
  }
  if (!given) (void)mr_lua_error(L, MR_ERROR_ARGUMENT, "%s: seed is missing", what);
  return check_number(L, what, "seed", mr_lua_option_integer(L, options, "seed", 0));
}

static mr_dtype dtype_option(lua_State *L, int options) {
  lua_getfield(L, options, "dtype");
  mr_dtype dtype = mr_lua_check_dtype(L, -1, MR_F32);
  lua_pop(L, 1);
  return dtype;
}

static int make_filled(lua_State *L, const char *what, const char *const names[], double first,
                       fill_function fill) {
  lua_settop(L, 2);
  mr_lua_check_keys(L, 2, what, names);
  mr_shape shape = mr_lua_check_shape(L, 1);
  uint64_t seed = required_seed(L, 2, what);
  uint64_t stream = check_number(L, what, "stream", mr_lua_option_integer(L, 2, "stream", 0));
  double a = mr_lua_option_number(L, 2, names[0], first);
  double b = mr_lua_option_number(L, 2, names[1], 1);
  mr_dtype dtype = dtype_option(L, 2);
  mr_tensor **slot = mr_lua_push_tensor_shell(L);
  MR_LUA_TRY(L, mr_tensor_new_raw(mr_lua_context(L)->device, dtype, &shape, slot));
  mr_lua_tensor_made(L);
  MR_LUA_TRY(L, fill(*slot, a, b, seed, stream));
  return 1;
}

/* core.normal(shape, {seed =, stream = 0, mean = 0, std = 1, dtype = "f32"}) */
static int make_normal(lua_State *L) {
  static const char *const names[] = {"mean", "std", "seed", "stream", "dtype", NULL};
  return make_filled(L, "normal", names, 0, mr_tensor_fill_normal);
}

/* core.uniform(shape, {seed =, stream = 0, low = 0, high = 1, dtype = "f32"}) */
static int make_uniform(lua_State *L) {
  static const char *const names[] = {"low", "high", "seed", "stream", "dtype", NULL};
  return make_filled(L, "uniform", names, 0, mr_tensor_fill_uniform);
}

static void read_words(lua_State *L, int index, int count, uint32_t *words) {
  luaL_checktype(L, index, LUA_TTABLE);
  for (int i = 0; i < count; i++) {
    lua_geti(L, index, i + 1);
    lua_Integer word = luaL_checkinteger(L, -1);
    luaL_argcheck(L, word >= 0 && word <= UINT32_MAX, index, "expected words of 32 bits");
    words[i] = (uint32_t)word;
    lua_pop(L, 1);
  }
}

/* core.philox({2 words}, {4 words}): the 4 random words of a key and a counter. */
static int encipher(lua_State *L) {
  uint32_t key[2], counter[4], words[4];
  read_words(L, 1, 2, key);
  read_words(L, 2, 4, counter);
  mr_philox(key, counter, words);
  for (int i = 0; i < 4; i++) lua_pushinteger(L, words[i]);
  return 4;
}

/* --- streams --- */

static mr_stream *check_stream(lua_State *L) { return luaL_checkudata(L, 1, type_name); }

/* core.stream(seed, id) */
static int make_stream(lua_State *L) {
  uint64_t seed = check_number(L, "stream", "seed", luaL_checkinteger(L, 1));
  uint64_t id = check_number(L, "stream", "id", luaL_checkinteger(L, 2));
  mr_stream *stream = lua_newuserdatauv(L, sizeof(mr_stream), 0);
  *stream = mr_stream_begin(seed, id);
  luaL_setmetatable(L, type_name);
  return 1;
}

static int next_word(lua_State *L) {
  lua_pushinteger(L, mr_stream_next(check_stream(L)));
  return 1;
}

static int next_uniform(lua_State *L) {
  lua_pushnumber(L, mr_stream_uniform(check_stream(L)));
  return 1;
}

static int next_integer(lua_State *L) {
  mr_stream *stream = check_stream(L);
  lua_Integer n = luaL_checkinteger(L, 2);
  if (n < 1)
    return mr_lua_error(L, MR_ERROR_ARGUMENT, "integer(n) draws from 1 to n: n is %lld",
                        (long long)n);
  lua_pushinteger(L, mr_stream_integer(stream, n) + 1);
  return 1;
}

static int next_normal(lua_State *L) {
  lua_pushnumber(L, mr_stream_normal(check_stream(L)));
  return 1;
}

static int save_state(lua_State *L) {
  char text[MR_STREAM_TEXT];
  mr_stream_save(check_stream(L), text);
  lua_pushstring(L, text);
  return 1;
}

static int restore_state(lua_State *L) {
  mr_stream *stream = check_stream(L);
  MR_LUA_TRY(L, mr_stream_restore(stream, luaL_checkstring(L, 2)));
  lua_settop(L, 1);
  return 1;
}

static int to_text(lua_State *L) {
  char text[MR_STREAM_TEXT];
  mr_stream_save(check_stream(L), text);
  lua_pushfstring(L, "stream<%s>", text);
  return 1;
}

static const luaL_Reg methods[] = {{"next", next_word},
                                   {"uniform", next_uniform},
                                   {"integer", next_integer},
                                   {"normal", next_normal},
                                   {"state", save_state},
                                   {"restore", restore_state},
                                   {NULL, NULL}};

static const luaL_Reg metamethods[] = {{"__tostring", to_text}, {NULL, NULL}};

static const luaL_Reg functions[] = {{"normal", make_normal},
                                     {"uniform", make_uniform},
                                     {"philox", encipher},
                                     {"stream", make_stream},
                                     {NULL, NULL}};

void mr_lua_open_random(lua_State *L) {
  mr_lua_define_type(L, type_name, methods, metamethods);
  luaL_setfuncs(L, functions, 0);
}
