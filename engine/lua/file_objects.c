/* The userdata of core.file. All can be <close> variables.
 *
 * append(path) -> appender: write(line), sync(), close().
 * begin_folder(path) -> staging: path() to write into, commit(), discard(). Collected or closed
 * without a commit, it discards.
 * lock(path) -> lock: close(). Held by another process: a fault with exit code 4 that says by
 * whom. lock_holder(path) -> that text, or nil. */
#include "lua/file_objects.h"

#include "base/file.h"
#include "base/folder.h"
#include "base/lock.h"
#include "lua/binding.h"
#include "lua/text.h"

static const char appender_name[] = "marea.appender";
static const char staging_name[] = "marea.staging";
static const char lock_name[] = "marea.lock";

/* Every object here is a box around one pointer, NULL once it is closed. */
typedef struct box {
  void *held;
} box;

static box *push_shell(lua_State *L, const char *name) {
  box *shell = lua_newuserdatauv(L, sizeof(box), 0);
  shell->held = NULL;
  luaL_setmetatable(L, name);
  return shell;
}

static void *check_open(lua_State *L, const char *name, const char *what) {
  box *shell = luaL_checkudata(L, 1, name);
  if (!shell->held) (void)mr_lua_error(L, MR_ERROR_ARGUMENT, "this %s is closed", what);
  return shell->held;
}

/* Empties the box at index 1 and returns what it held, or NULL. */
static void *take(lua_State *L, const char *name) {
  box *shell = luaL_checkudata(L, 1, name);
  void *held = shell->held;
  shell->held = NULL;
  return held;
}

/* Appender */

static int append(lua_State *L) {
  const char *path = mr_lua_check_text(L, 1, "a path");
  mr_appender *opened = NULL;
  box *shell = push_shell(L, appender_name);
  MR_LUA_TRY(L, mr_appender_open(path, &opened));
  shell->held = opened;
  return 1;
}

static int append_line(lua_State *L) {
  mr_appender *appender = check_open(L, appender_name, "appender");
  size_t bytes = 0;
  const char *line = luaL_checklstring(L, 2, &bytes);
  MR_LUA_TRY(L, mr_appender_write(appender, line, (int64_t)bytes));
  return 0;
}

static int append_sync(lua_State *L) {
  MR_LUA_TRY(L, mr_appender_sync(check_open(L, appender_name, "appender")));
  return 0;
}

static int append_close(lua_State *L) {
  mr_appender_release(take(L, appender_name));
  return 0;
}

/* Staging folder */

static int begin_folder(lua_State *L) {
  const char *path = mr_lua_check_text(L, 1, "a path");
  mr_staging *begun = NULL;
  box *shell = push_shell(L, staging_name);
  MR_LUA_TRY(L, mr_folder_begin(path, &begun));
  shell->held = begun;
  return 1;
}

static int staging_path(lua_State *L) {
  lua_pushstring(L, mr_folder_staged(check_open(L, staging_name, "staging folder")));
  return 1;
}

/* A commit that fails discards. */
static int staging_commit(lua_State *L) {
  mr_staging *staging = check_open(L, staging_name, "staging folder");
  mr_status status = mr_folder_commit(staging);
  mr_folder_discard(take(L, staging_name));
  MR_LUA_TRY(L, status);
  return 0;
}

static int staging_discard(lua_State *L) {
  mr_folder_discard(take(L, staging_name));
  return 0;
}

/* Lock */

static int lock(lua_State *L) {
  const char *path = mr_lua_check_text(L, 1, "the path of a folder");
  mr_lock *taken = NULL;
  box *shell = push_shell(L, lock_name);
  MR_LUA_TRY(L, mr_lock_acquire(path, &taken));
  shell->held = taken;
  return 1;
}

static int lock_holder(lua_State *L) {
  const char *path = mr_lua_check_text(L, 1, "the path of a folder");
  char holder[MR_LOCK_HOLDER];
  MR_LUA_TRY(L, mr_lock_holder(path, holder));
  if (holder[0])
    lua_pushstring(L, holder);
  else
    lua_pushnil(L);
  return 1;
}

static int lock_close(lua_State *L) {
  mr_lock_release(take(L, lock_name));
  return 0;
}

void mr_lua_open_file_objects(lua_State *L) {
  static const luaL_Reg appender[] = {
      {"write", append_line}, {"sync", append_sync}, {"close", append_close}, {NULL, NULL}};
  static const luaL_Reg appender_meta[] = {
      {"__gc", append_close}, {"__close", append_close}, {NULL, NULL}};
  static const luaL_Reg staging[] = {{"path", staging_path},
                                     {"commit", staging_commit},
                                     {"discard", staging_discard},
                                     {NULL, NULL}};
  static const luaL_Reg staging_meta[] = {
      {"__gc", staging_discard}, {"__close", staging_discard}, {NULL, NULL}};
  static const luaL_Reg locks[] = {{"close", lock_close}, {NULL, NULL}};
  static const luaL_Reg lock_meta[] = {{"__gc", lock_close}, {"__close", lock_close}, {NULL, NULL}};
  static const luaL_Reg functions[] = {{"append", append},
                                       {"begin_folder", begin_folder},
                                       {"lock", lock},
                                       {"lock_holder", lock_holder},
                                       {NULL, NULL}};
  mr_lua_define_type(L, appender_name, appender, appender_meta);
  mr_lua_define_type(L, staging_name, staging, staging_meta);
  mr_lua_define_type(L, lock_name, locks, lock_meta);
  luaL_setfuncs(L, functions, 0);
}
