/* The userdata `reducer`, and the scopes that its no_sync opens. */
#include "train/reducer.h"

#include <string.h>

#include "grad/ops/tie.h"
#include "lua/binding.h"
#include "lua/train.h"
#include "lua/world.h"

static const char type_name[] = "marea.reducer";
static const char scope_name[] = "marea.no_sync";

typedef struct box {
  mr_reducer *reducer;
} box;

static mr_reducer *check_reducer(lua_State *L, int index) {
  box *held = luaL_checkudata(L, index, type_name);
  if (!held->reducer) (void)mr_lua_error(L, MR_ERROR_ARGUMENT, "this reducer was closed");
  return held->reducer;
}

static int collect(lua_State *L) {
  box *held = luaL_checkudata(L, 1, type_name);
  mr_reducer *reducer = held->reducer;
  held->reducer = NULL;
  mr_reducer_release(reducer);
  return 0;
}

static int read_reduction(lua_State *L) {
  const char *name = mr_lua_option_string(L, 3, "reduction", "mean");
  if (strcmp(name, "mean") != 0 && strcmp(name, "sum") != 0)
    (void)mr_lua_error(L, MR_ERROR_ARGUMENT, "reduction must be 'mean' or 'sum', got '%s'", name);
  return strcmp(name, "mean") == 0;
}

static int make_reducer(lua_State *L) {
  static const char *const keys[] = {"reduction", "bucket_bytes", "overlap", NULL};
  mr_unit *unit = mr_lua_check_unit(L, 1);
  mr_group *group = mr_lua_check_group(L, 2);
  mr_lua_check_keys(L, 3, "reducer", keys);
  mr_reducer_settings settings = {
      .mean = read_reduction(L),
      .bucket_bytes = mr_lua_option_integer(L, 3, "bucket_bytes", (int64_t)1 << 20),
      .overlap = mr_lua_option_flag(L, 3, "overlap", 1)};
  box *shell = lua_newuserdatauv(L, sizeof(box), 0);
  shell->reducer = NULL;
  luaL_setmetatable(L, type_name);
  MR_LUA_TRY(L, mr_reducer_new(unit, group, &settings, &shell->reducer));
  return 1;
}

static int attach(lua_State *L) {
  char line[128];
  mr_context *context = mr_lua_context(L);
  mr_reducer *reducer = check_reducer(L, 1);
  mr_tensor *loss = mr_lua_check_tensor(L, 2), *anchor = mr_reducer_anchor(reducer);
  if (loss->dtype != anchor->dtype)
    return mr_lua_error(L, MR_ERROR_ARGUMENT, "a loss of %s on parameters of %s",
                        mr_dtype_name(loss->dtype), mr_dtype_name(anchor->dtype));
  mr_lua_line(L, line, sizeof line);
  mr_reducer_set_line(reducer, line);
  mr_call call = {.op = &mr_op_tie, .dtype = loss->dtype};
  call.tensor[0] = loss;
  call.tensor[1] = anchor;
  mr_tensor **slot = mr_lua_push_tensor_shell(L);
  MR_LUA_TRY(L, mr_tape_apply(&context->tape, &call));
  *slot = call.output;
  return 1;
}

/* A scope keeps its reducer alive through its user value. */
static int enter_no_sync(lua_State *L) {
  mr_reducer *reducer = check_reducer(L, 1);
  int *entered = lua_newuserdatauv(L, sizeof(int), 1);
  *entered = 0;
  lua_pushvalue(L, 1);
  lua_setiuservalue(L, -2, 1);
  luaL_setmetatable(L, scope_name);
  mr_reducer_enter_no_sync(reducer);
  *entered = 1;
  return 1;
}

static int leave_no_sync(lua_State *L) {
  int *entered = luaL_checkudata(L, 1, scope_name);
  if (!*entered) return 0;
  *entered = 0;
  lua_getiuservalue(L, 1, 1);
  box *held = luaL_testudata(L, -1, type_name);
  if (held && held->reducer) mr_reducer_leave_no_sync(held->reducer);
  return 0;
}

static int zero_gradients(lua_State *L) {
  MR_LUA_TRY(L, mr_reducer_zero_gradients(check_reducer(L, 1)));
  return 0;
}

static int begin_window(lua_State *L) {
  MR_LUA_TRY(L, mr_reducer_begin_window(check_reducer(L, 1), luaL_checkinteger(L, 2)));
  return 0;
}

static int end_window(lua_State *L) {
  MR_LUA_TRY(L, mr_reducer_end_window(check_reducer(L, 1)));
  return 0;
}

/* buckets() -> list of {first, past}, 0-based elements of the flat gradients. */
static int read_buckets(lua_State *L) {
  mr_reducer *reducer = check_reducer(L, 1);
  lua_newtable(L);
  for (int64_t i = 0; i < mr_reducer_buckets(reducer); i++) {
    int64_t first = 0, past = 0;
    mr_reducer_bucket(reducer, i, &first, &past);
    lua_createtable(L, 0, 2);
    lua_pushinteger(L, first);
    lua_setfield(L, -2, "first");
    lua_pushinteger(L, past);
    lua_setfield(L, -2, "past");
    lua_seti(L, -2, i + 1);
  }
  return 1;
}

void mr_lua_open_reducer(lua_State *L) {
  static const luaL_Reg methods[] = {{"attach", attach},
                                     {"no_sync", enter_no_sync},
                                     {"zero_grad", zero_gradients},
                                     {"begin_window", begin_window},
                                     {"end_window", end_window},
                                     {"buckets", read_buckets},
                                     {"close", collect},
                                     {NULL, NULL}};
  static const luaL_Reg metamethods[] = {{"__gc", collect}, {"__close", collect}, {NULL, NULL}};
  static const luaL_Reg no_methods[] = {{NULL, NULL}};
  static const luaL_Reg scope[] = {
      {"__gc", leave_no_sync}, {"__close", leave_no_sync}, {NULL, NULL}};
  mr_lua_define_type(L, type_name, methods, metamethods);
  mr_lua_define_type(L, scope_name, no_methods, scope);
  lua_pushcfunction(L, make_reducer);
  lua_setfield(L, -2, "reducer");
}
