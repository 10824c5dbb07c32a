/* core.compare: two gradients under a gate; core.add_absolute: sums of absolute values. */
#include "tensor/compare.h"

#include "lua/binding.h"

static const char *const keys[] = {"absolute", "relative", "excuse", NULL};
static const char *const excuse_keys[] = {"factor",   "scale",    "a", "b",
                                          "absolute", "relative", NULL};

static mr_tensor *option_tensor(lua_State *L, int index, const char *name) {
  lua_getfield(L, index, name);
  mr_tensor *tensor = mr_lua_test_tensor(L, -1);
  if (!tensor)
    (void)mr_lua_error(L, MR_ERROR_ARGUMENT, "compare: excuse.%s must be a tensor", name);
  lua_pop(L, 1); /* the table keeps it */
  return tensor;
}

static const mr_excuse *read_excuse(lua_State *L, mr_excuse *excuse) {
  if (lua_isnoneornil(L, 3) || lua_getfield(L, 3, "excuse") == LUA_TNIL) return NULL;
  int index = lua_gettop(L);
  mr_lua_check_keys(L, index, "excuse", excuse_keys);
  *excuse = (mr_excuse){.factor = mr_lua_option_number(L, index, "factor", 0),
                        .scale = option_tensor(L, index, "scale"),
                        .a = option_tensor(L, index, "a"),
                        .b = option_tensor(L, index, "b"),
                        .gate = {mr_lua_option_number(L, index, "absolute", 0),
                                 mr_lua_option_number(L, index, "relative", 0)}};
  return excuse;
}

static void set_integer(lua_State *L, const char *name, int64_t value) {
  lua_pushinteger(L, value);
  lua_setfield(L, -2, name);
}

static void set_number(lua_State *L, const char *name, double value) {
  lua_pushnumber(L, value);
  lua_setfield(L, -2, name);
}

/* Sets `shares` of the table at the top of the stack. */
static void set_shares(lua_State *L, const mr_comparison *found) {
  lua_createtable(L, MR_SHARE_COUNT, 0);
  for (int i = 0; i < MR_SHARE_COUNT; i++) {
    lua_createtable(L, 0, 2);
    if (i < MR_SHARE_EDGES) set_number(L, "up_to", mr_share_edges[i]);
    set_integer(L, "count", found->shares[i]);
    lua_rawseti(L, -2, i + 1);
  }
  lua_setfield(L, -2, "shares");
}

/* compare(a, b, {absolute=, relative=, excuse={factor=, scale=, a=, b=, absolute=, relative=}})
 * -> {count, failing, rounding, max_abs, max_rel, worst (1-based; 0: none), worst_a, worst_b,
 *     max_b, dot_ab, dot_bb, shares = {{up_to (absent in the last), count}}} */
static int compare(lua_State *L) {
  mr_comparison found;
  mr_excuse excuse;
  lua_settop(L, 3);
  mr_tensor *a = mr_lua_check_tensor(L, 1), *b = mr_lua_check_tensor(L, 2);
  mr_lua_check_keys(L, 3, "compare", keys);
  mr_gate gate = {mr_lua_option_number(L, 3, "absolute", 0),
                  mr_lua_option_number(L, 3, "relative", 0)};
  MR_LUA_TRY(L, mr_tensor_compare_sync(a, b, gate, read_excuse(L, &excuse), &found));
  lua_createtable(L, 0, 12);
  set_integer(L, "count", found.count);
  set_integer(L, "failing", found.failing);
  set_integer(L, "rounding", found.rounding);
  set_integer(L, "worst", found.worst + 1);
  set_number(L, "max_abs", found.max_abs);
  set_number(L, "max_rel", found.max_rel);
  set_number(L, "max_b", found.max_b);
  set_number(L, "worst_a", found.worst_a);
  set_number(L, "worst_b", found.worst_b);
  set_number(L, "dot_ab", found.dot_ab);
  set_number(L, "dot_bb", found.dot_bb);
  set_shares(L, &found);
  return 1;
}

static int add_absolute(lua_State *L) {
  MR_LUA_TRY(L, mr_tensor_add_absolute_sync(mr_lua_check_tensor(L, 1), mr_lua_check_tensor(L, 2)));
  return 0;
}

void mr_lua_open_compare(lua_State *L) {
  static const luaL_Reg functions[] = {
      {"compare", compare}, {"add_absolute", add_absolute}, {NULL, NULL}};
  luaL_setfuncs(L, functions, 0);
}
