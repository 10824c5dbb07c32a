/* The userdata `unit`: parameters and gradients in flat buffers. */
#include "train/unit.h"

#include <string.h>

#include "lua/binding.h"
#include "lua/train.h"
#include "lua/world.h"
#include "train/shared.h"

static const char type_name[] = "marea.unit";

typedef struct box {
  mr_unit *unit;
} box;

mr_unit *mr_lua_check_unit(lua_State *L, int index) {
  box *held = luaL_testudata(L, index, type_name);
  if (!held || !held->unit)
    (void)mr_lua_error(L, MR_ERROR_ARGUMENT, "expected a unit of parameters as argument %d, got %s",
                       index, luaL_typename(L, index));
  return held->unit;
}

static int collect(lua_State *L) {
  box *held = luaL_checkudata(L, 1, type_name);
  mr_unit *unit = held->unit;
  held->unit = NULL;
  mr_unit_release(unit);
  return 0;
}

static int to_text(lua_State *L) {
  const mr_unit *unit = mr_lua_check_unit(L, 1);
  lua_pushfstring(L, "unit<%s,%I parameters in %I ranges>", mr_dtype_name(unit->dtype),
                  (LUAI_UACINT)mr_unit_parameters(unit), (LUAI_UACINT)unit->ranges);
  return 1;
}

/* Reads {name=, shape=, decay=} at the top of the stack. Its strings stay in the Lua table. */
static mr_range read_range(lua_State *L, lua_Integer i) {
  static const char *const keys[] = {"name", "shape", "decay", NULL};
  mr_range range = {0};
  if (!lua_istable(L, -1))
    (void)mr_lua_error(L, MR_ERROR_ARGUMENT, "parameter %lld must be {name=, shape=, decay=}",
                       (long long)i);
  mr_lua_check_keys(L, -1, "a parameter", keys);
  int index = lua_gettop(L);
  range.name = mr_lua_option_string(L, index, "name", NULL);
  if (!range.name)
    (void)mr_lua_error(L, MR_ERROR_ARGUMENT, "parameter %lld has no name", (long long)i);
  range.decays = mr_lua_option_flag(L, index, "decay", 1);
  lua_getfield(L, index, "shape");
  range.shape = mr_lua_check_shape(L, lua_gettop(L));
  lua_pop(L, 1);
  return range;
}

static int make_unit(lua_State *L) {
  luaL_checktype(L, 1, LUA_TTABLE);
  mr_dtype dtype = mr_lua_check_dtype(L, 2, MR_F32);
  lua_Integer count = luaL_len(L, 1);
  mr_range *ranges = lua_newuserdatauv(L, sizeof(mr_range) * (size_t)(count + 1), 0);
  for (lua_Integer i = 1; i <= count; i++) {
    lua_geti(L, 1, i);
    ranges[i - 1] = read_range(L, i);
    lua_pop(L, 1);
  }
  box *shell = lua_newuserdatauv(L, sizeof(box), 0);
  shell->unit = NULL;
  luaL_setmetatable(L, type_name);
  MR_LUA_TRY(L, mr_unit_new(mr_lua_context(L)->device, dtype, ranges, count, &shell->unit));
  return 1;
}

static int push_retained(lua_State *L, mr_tensor *tensor) {
  mr_tensor **slot = mr_lua_push_tensor_shell(L);
  *slot = mr_tensor_retain(tensor);
  return 1;
}

static int read_parameter(lua_State *L) {
  mr_unit *unit = mr_lua_check_unit(L, 1);
  const char *name = luaL_checkstring(L, 2);
  int64_t i = mr_unit_find(unit, name);
  if (i < 0) return mr_lua_error(L, MR_ERROR_ARGUMENT, "there is no parameter '%s'", name);
  return push_retained(L, unit->range[i].parameter);
}

static int read_values(lua_State *L) { return push_retained(L, mr_lua_check_unit(L, 1)->values); }

static int read_master(lua_State *L) { return push_retained(L, mr_lua_check_unit(L, 1)->master); }

static int change_refresh(lua_State *L) {
  MR_LUA_TRY(L, mr_unit_refresh(mr_lua_check_unit(L, 1)));
  return 0;
}

static int read_gradients(lua_State *L) {
  return push_retained(L, mr_lua_check_unit(L, 1)->gradients);
}

static void push_range(lua_State *L, const mr_range *range) {
  lua_createtable(L, 0, 5);
  lua_pushstring(L, range->name);
  lua_setfield(L, -2, "name");
  lua_pushinteger(L, range->offset);
  lua_setfield(L, -2, "offset");
  lua_pushinteger(L, range->count);
  lua_setfield(L, -2, "count");
  lua_pushboolean(L, range->decays);
  lua_setfield(L, -2, "decay");
  mr_lua_push_shape(L, &range->shape);
  lua_setfield(L, -2, "shape");
}

static int read_ranges(lua_State *L) {
  const mr_unit *unit = mr_lua_check_unit(L, 1);
  lua_newtable(L);
  for (int64_t i = 0; i < unit->ranges; i++) {
    push_range(L, &unit->range[i]);
    lua_seti(L, -2, i + 1);
  }
  return 1;
}

static int read_names(lua_State *L) {
  const mr_unit *unit = mr_lua_check_unit(L, 1);
  lua_newtable(L);
  for (int64_t i = 0; i < unit->ranges; i++) {
    lua_pushstring(L, unit->range[i].name);
    lua_seti(L, -2, i + 1);
  }
  return 1;
}

static int read_parameters(lua_State *L) {
  lua_pushinteger(L, mr_unit_parameters(mr_lua_check_unit(L, 1)));
  return 1;
}

/* version() grows with every change of the parameters in place. */
static int read_version(lua_State *L) {
  lua_pushinteger(L, mr_unit_version(mr_lua_check_unit(L, 1)));
  return 1;
}

static int read_norm(lua_State *L) {
  double norm = 0;
  MR_LUA_TRY(L, mr_unit_gradient_norm_sync(mr_lua_check_unit(L, 1), &norm));
  lua_pushnumber(L, norm);
  return 1;
}

static int change_clip(lua_State *L) {
  double norm = 0, maximum = luaL_checknumber(L, 2);
  luaL_argcheck(L, maximum > 0, 2, "the largest norm must be above 0");
  MR_LUA_TRY(L, mr_unit_clip_sync(mr_lua_check_unit(L, 1), maximum, &norm));
  lua_pushnumber(L, norm);
  return 1;
}

static int read_clip_factor(lua_State *L) {
  double maximum = luaL_checknumber(L, 2), norm = luaL_checknumber(L, 3);
  luaL_argcheck(L, maximum > 0, 2, "the largest norm must be above 0");
  lua_pushnumber(L, mr_clip_factor(maximum, norm));
  return 1;
}

static int change_zero(lua_State *L) {
  MR_LUA_TRY(L, mr_unit_zero_gradients(mr_lua_check_unit(L, 1)));
  return 0;
}

/* share_gradients(group) -> how they are reduced, what was in the way of a shared window */
static int share_gradients(lua_State *L) {
  char line[MR_LUA_LINE];
  mr_way way;
  mr_unit *unit = mr_lua_check_unit(L, 1);
  mr_group *group = mr_lua_check_group(L, 2);
  mr_lua_line(L, line, sizeof line);
  MR_LUA_TRY(L, mr_unit_share_gradients(unit, group, line, &way));
  lua_pushstring(L, way.name);
  lua_pushstring(L, way.why);
  return 2;
}

void mr_lua_open_unit(lua_State *L) {
  static const luaL_Reg methods[] = {{"parameter", read_parameter},
                                     {"names", read_names},
                                     {"ranges", read_ranges},
                                     {"parameters", read_parameters},
                                     {"version", read_version},
                                     {"values", read_values},
                                     {"master", read_master},
                                     {"refresh", change_refresh},
                                     {"gradients", read_gradients},
                                     {"share_gradients", share_gradients},
                                     {"zero_grad", change_zero},
                                     {"norm", read_norm},
                                     {"clip", change_clip},
                                     {"clip_factor", read_clip_factor},
                                     {NULL, NULL}};
  static const luaL_Reg metamethods[] = {{"__gc", collect}, {"__tostring", to_text}, {NULL, NULL}};
  mr_lua_define_type(L, type_name, methods, metamethods);
  lua_pushcfunction(L, make_unit);
  lua_setfield(L, -2, "unit");
}
