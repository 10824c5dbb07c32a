/* The userdata `optimizer`: core.sgd and core.adamw. */
#include "train/optimizer.h"

#include "lua/binding.h"
#include "lua/train.h"

static const char type_name[] = "marea.optimizer";

typedef struct box {
  mr_optimizer *optimizer;
} box;

static mr_optimizer *check_optimizer(lua_State *L, int index) {
  box *held = luaL_checkudata(L, index, type_name);
  if (!held->optimizer) (void)mr_lua_error(L, MR_ERROR_ARGUMENT, "this optimizer was closed");
  return held->optimizer;
}

static int collect(lua_State *L) {
  box *held = luaL_checkudata(L, 1, type_name);
  mr_optimizer *optimizer = held->optimizer;
  held->optimizer = NULL;
  mr_optimizer_release(optimizer);
  return 0;
}

static box *push_shell(lua_State *L) {
  box *shell = lua_newuserdatauv(L, sizeof(box), 0);
  shell->optimizer = NULL;
  luaL_setmetatable(L, type_name);
  return shell;
}

static int make_sgd(lua_State *L) {
  static const char *const keys[] = {"momentum", "nesterov", "decay", "decay_all", NULL};
  mr_unit *unit = mr_lua_check_unit(L, 1);
  mr_lua_check_keys(L, 2, "sgd", keys);
  mr_sgd_settings settings = {.momentum = mr_lua_option_number(L, 2, "momentum", 0),
                              .nesterov = mr_lua_option_flag(L, 2, "nesterov", 0),
                              .decay = mr_lua_option_number(L, 2, "decay", 0),
                              .decay_all = mr_lua_option_flag(L, 2, "decay_all", 0)};
  box *shell = push_shell(L);
  MR_LUA_TRY(L, mr_optimizer_new_sgd(unit, &settings, &shell->optimizer));
  return 1;
}

static int make_adamw(lua_State *L) {
  static const char *const keys[] = {"beta1", "beta2", "epsilon", "decay", "decay_all", NULL};
  mr_unit *unit = mr_lua_check_unit(L, 1);
  mr_lua_check_keys(L, 2, "adamw", keys);
  mr_adamw_settings settings = {.beta1 = mr_lua_option_number(L, 2, "beta1", 0.9),
                                .beta2 = mr_lua_option_number(L, 2, "beta2", 0.999),
                                .epsilon = mr_lua_option_number(L, 2, "epsilon", 1e-8),
                                .decay = mr_lua_option_number(L, 2, "decay", 0.01),
                                .decay_all = mr_lua_option_flag(L, 2, "decay_all", 0)};
  box *shell = push_shell(L);
  MR_LUA_TRY(L, mr_optimizer_new_adamw(unit, &settings, &shell->optimizer));
  return 1;
}

static int step(lua_State *L) {
  MR_LUA_TRY(
      L, mr_optimizer_step(check_optimizer(L, 1), luaL_checknumber(L, 2), luaL_optnumber(L, 3, 1)));
  return 0;
}

static int read_steps(lua_State *L) {
  lua_pushinteger(L, mr_optimizer_steps(check_optimizer(L, 1)));
  return 1;
}

static int restore(lua_State *L) {
  lua_Integer steps = luaL_checkinteger(L, 2);
  luaL_argcheck(L, steps >= 0, 2, "the number of steps must be at least 0");
  mr_optimizer_restore_steps(check_optimizer(L, 1), steps);
  return 0;
}

static int read_state(lua_State *L) {
  mr_optimizer *optimizer = check_optimizer(L, 1);
  const char *name = NULL;
  mr_tensor *state = NULL;
  lua_newtable(L);
  for (int i = 0; (state = mr_optimizer_state(optimizer, i, &name)); i++) {
    mr_tensor **slot = mr_lua_push_tensor_shell(L);
    *slot = mr_tensor_retain(state);
    lua_setfield(L, -2, name);
  }
  return 1;
}

void mr_lua_open_optimizer(lua_State *L) {
  static const luaL_Reg methods[] = {{"step", step},
                                     {"steps", read_steps},
                                     {"restore", restore},
                                     {"state", read_state},
                                     {NULL, NULL}};
  static const luaL_Reg metamethods[] = {{"__gc", collect}, {NULL, NULL}};
  static const luaL_Reg functions[] = {{"sgd", make_sgd}, {"adamw", make_adamw}, {NULL, NULL}};
  mr_lua_define_type(L, type_name, methods, metamethods);
  luaL_setfuncs(L, functions, 0);
}
