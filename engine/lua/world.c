/* The userdata `group`: ranks, splits, the ledger; collectives.c adds what moves data.
 *
 * core.world() -> the group of all ranks; the first call opens it
 * core.end_world(code, message) -> code, alike, problem: ends it, in good order when code is 0 */
#include "lua/world.h"

#include <string.h>

#include "lua/binding.h"

static const char type_name[] = "marea.group";
static const char keeper_name[] = "marea.world_keeper"; /* a type */
static const char world_key[] = "marea.world";          /* a place in the registry */

typedef struct box {
  mr_group *group;
} box;

mr_group **mr_lua_push_group_shell(lua_State *L) {
  box *shell = lua_newuserdatauv(L, sizeof(box), 0);
  shell->group = NULL;
  luaL_setmetatable(L, type_name);
  return &shell->group;
}

mr_group *mr_lua_check_group(lua_State *L, int index) {
  box *held = luaL_testudata(L, index, type_name);
  if (!held || !held->group)
    (void)mr_lua_error(L, MR_ERROR_ARGUMENT, "expected a group of ranks as argument %d, got %s",
                       index, luaL_typename(L, index));
  return held->group;
}

static int collect(lua_State *L) {
  box *held = luaL_checkudata(L, 1, type_name);
  mr_group *group = held->group;
  held->group = NULL;
  mr_group_release(group);
  return 0;
}

static int to_text(lua_State *L) {
  const mr_group *group = mr_lua_check_group(L, 1);
  lua_pushfstring(L, "group<%s, rank %d of %d>", mr_group_name(group), mr_group_rank(group),
                  mr_group_size(group));
  return 1;
}

/* ---- questions ---- */

static int push_integer(lua_State *L, lua_Integer value) {
  lua_pushinteger(L, value);
  return 1;
}

static int read_rank(lua_State *L) {
  return push_integer(L, mr_group_rank(mr_lua_check_group(L, 1)));
}
static int read_size(lua_State *L) {
  return push_integer(L, mr_group_size(mr_lua_check_group(L, 1)));
}

static int read_local_rank(lua_State *L) {
  return push_integer(L, mr_group_local_rank(mr_lua_check_group(L, 1)));
}

static int read_local_size(lua_State *L) {
  return push_integer(L, mr_group_local_size(mr_lua_check_group(L, 1)));
}

static int read_name(lua_State *L) {
  lua_pushstring(L, mr_group_name(mr_lua_check_group(L, 1)));
  return 1;
}

static int read_board(lua_State *L) {
  lua_pushstring(L, mr_comm_board_name(mr_lua_check_group(L, 1)));
  return 1;
}

/* ledger() -> {all_reduce = {calls =, bytes =}, ...} */
static int read_ledger(lua_State *L) {
  mr_ledger ledger = mr_ledger_read(mr_lua_check_group(L, 1));
  lua_createtable(L, 0, MR_COLLECTIVE_COUNT);
  for (int kind = 0; kind < MR_COLLECTIVE_COUNT; kind++) {
    lua_createtable(L, 0, 2);
    lua_pushinteger(L, ledger.calls[kind]);
    lua_setfield(L, -2, "calls");
    lua_pushinteger(L, ledger.bytes[kind]);
    lua_setfield(L, -2, "bytes");
    lua_setfield(L, -2, mr_collective_name((mr_collective)kind));
  }
  return 1;
}

static int read_waited(lua_State *L) {
  (void)mr_lua_check_group(L, 1);
  lua_pushnumber(L, mr_comm_waited_seconds());
  return 1;
}

/* summed() -> seconds of summing in shared windows, seconds of them within waits */
static int read_summed(lua_State *L) {
  double waiting = 0;
  (void)mr_lua_check_group(L, 1);
  lua_pushnumber(L, mr_comm_summed_seconds(&waiting));
  lua_pushnumber(L, waiting);
  return 2;
}

/* ---- GPUs ---- */

/* use_nccl() -> "NCCL 2.28.9", or nil and what is missing ("" for nothing): between the GPUs that
 * all ranks use; collective, on the world */
static int use_nccl(lua_State *L) {
  mr_group *group = mr_lua_check_group(L, 1);
  const char *name = NULL;
  char why[MR_NCCL_WHY];
  MR_LUA_TRY(L, mr_comm_use_nccl(group, mr_lua_context(L)->device, &name, why));
  lua_pushstring(L, name);
  lua_pushstring(L, name ? NULL : why);
  return 2;
}

/* carrier() -> what moves data of the device in use without the host, or nil */
static int read_carrier(lua_State *L) {
  lua_pushstring(L, mr_group_carrier(mr_lua_check_group(L, 1), mr_lua_context(L)->device));
  return 1;
}

/* ---- split, progress ---- */

static int check_int(lua_State *L, int index, int fallback, const char *what) {
  lua_Integer value = luaL_optinteger(L, index, fallback);
  if (value < INT32_MIN || value > INT32_MAX)
    (void)mr_lua_error(L, MR_ERROR_ARGUMENT, "split: a %s of %lld is out of range", what,
                       (long long)value);
  return (int)value;
}

static int make_split(lua_State *L) {
  char line[MR_LUA_LINE];
  mr_group *parent = mr_lua_check_group(L, 1);
  (void)luaL_checkinteger(L, 2);
  int color = check_int(L, 2, 0, "colour"), key = check_int(L, 3, 0, "key");
  mr_lua_line(L, line, sizeof line);
  mr_group **slot = mr_lua_push_group_shell(L);
  MR_LUA_TRY(L, mr_group_split(parent, color, key, line, slot));
  if (!*slot) lua_pushnil(L);
  return 1;
}

static int move_on(lua_State *L) {
  MR_LUA_TRY(L, mr_group_progress(mr_lua_check_group(L, 1)));
  return 0;
}

/* ---- the world ---- */

/* When the Lua state ends: closes a world that nobody ended, for plain Lua has no other host. A
 * world that cannot close is left, so that no rank waits for this one. */
static int collect_keeper(lua_State *L) {
  box *held = luaL_checkudata(L, 1, keeper_name);
  mr_group *group = held->group;
  held->group = NULL;
  if (!group) return 0;
  if (mr_comm_world() && mr_comm_close(group) != MR_OK)
    mr_comm_leave(group, 1, mr_status_message());
  mr_comm_stop(group);
  mr_group_release(group);
  return 0;
}

/* The world as userdata, made once per state and kept in the registry. */
static int push_world(lua_State *L) {
  if (lua_getfield(L, LUA_REGISTRYINDEX, world_key) == LUA_TTABLE) {
    lua_geti(L, -1, 1);
    return 1;
  }
  lua_createtable(L, 2, 0);
  mr_group **slot = mr_lua_push_group_shell(L);
  lua_seti(L, -2, 1);
  box *keeper = lua_newuserdatauv(L, sizeof(box), 0);
  keeper->group = NULL;
  luaL_setmetatable(L, keeper_name);
  lua_seti(L, -2, 2);
  MR_LUA_TRY(L, mr_comm_open(slot));
  keeper->group = mr_group_retain(*slot);
  lua_setfield(L, LUA_REGISTRYINDEX, world_key);
  lua_getfield(L, LUA_REGISTRYINDEX, world_key);
  lua_geti(L, -1, 1);
  return 1;
}

/* end_world(code, message): code 0 closes the world, another one leaves it. Returns the code that
 * the process must end with, whether all ranks end alike, and why closing failed. */
static int end_world(lua_State *L) {
  lua_Integer code = luaL_checkinteger(L, 1);
  const char *message = luaL_optstring(L, 2, "");
  mr_group *world = mr_comm_world();
  char problem[1024] = "";
  if (world && code == 0) {
    mr_status status = mr_comm_close(world);
    if (status != MR_OK) {
      size_t length = strlen(mr_status_message());
      if (length >= sizeof problem) length = sizeof problem - 1;
      memcpy(problem, mr_status_message(), length);
      code = mr_status_exit_code(status);
    }
  }
  int alike = 1;
  if (world && code != 0) {
    mr_comm_leave(world, (int)code, problem[0] ? problem : message);
    code = mr_comm_peer_exit_code(world);
    alike = mr_comm_left_alike(world);
  }
  lua_pushinteger(L, code);
  lua_pushboolean(L, alike);
  lua_pushstring(L, problem[0] ? problem : NULL);
  return 3;
}

void mr_lua_open_world(lua_State *L) {
  static const luaL_Reg methods[] = {{"rank", read_rank},
                                     {"size", read_size},
                                     {"local_rank", read_local_rank},
                                     {"local_size", read_local_size},
                                     {"name", read_name},
                                     {"board", read_board},
                                     {"ledger", read_ledger},
                                     {"waited", read_waited},
                                     {"summed", read_summed},
                                     {"use_nccl", use_nccl},
                                     {"carrier", read_carrier},
                                     {"split", make_split},
                                     {"progress", move_on},
                                     {NULL, NULL}};
  static const luaL_Reg metamethods[] = {{"__gc", collect}, {"__tostring", to_text}, {NULL, NULL}};
  static const luaL_Reg none[] = {{NULL, NULL}};
  static const luaL_Reg keeper[] = {{"__gc", collect_keeper}, {NULL, NULL}};
  static const luaL_Reg functions[] = {
      {"world", push_world}, {"end_world", end_world}, {NULL, NULL}};
  mr_lua_define_type(L, type_name, methods, metamethods);
  mr_lua_define_type(L, keeper_name, none, keeper);
  luaL_setfuncs(L, functions, 0);
}
