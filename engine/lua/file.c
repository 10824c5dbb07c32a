/* core.file: questions, reading, whole and atomic writing, folders.
 *
 * read(path) -> text; write(path, text); exists(path), is_folder(path), is_link(path) -> boolean;
 * bytes(path) -> length of a regular file or nil;
 * list(path) -> sorted names; make_folder(path); remove(path); move(from, to);
 * remove_folder(root, name) removes root/name and what it holds; sha256(text),
 * sha256_of(path, first?, bytes?) -> 64 digits; append(path), begin_folder(path), lock(path) ->
 * objects, lock_holder(path) -> text or nil (file_objects.c); fail_at(n), calls() for specs.
 * core.utc() -> "2025-01-31T12:00:00Z". All raise on failure, but the questions. */
#include "base/file.h"

#include "base/clock.h"
#include "base/folder.h"
#include "base/hash.h"
#include "base/memory.h"
#include "lua/binding.h"
#include "lua/file_objects.h"
#include "lua/text.h"

static const char type_name[] = "marea.file.results";

/* What the engine allocated for one call, so that a Lua error on the way cannot lose it. */
typedef struct results {
  char *text;
  mr_names names;
} results;

static results *push_results(lua_State *L) {
  results *held = lua_newuserdatauv(L, sizeof(results), 0);
  *held = (results){NULL, {NULL, 0}};
  luaL_setmetatable(L, type_name);
  return held;
}

static int release_results(lua_State *L) {
  results *held = luaL_checkudata(L, 1, type_name);
  char *text = held->text;
  held->text = NULL;
  mr_memory_release(text);
  mr_names_release(&held->names);
  return 0;
}

static const char *check_path(lua_State *L, int index) {
  return mr_lua_check_text(L, index, "a path");
}

static int read_file(lua_State *L) {
  const char *path = check_path(L, 1);
  int64_t bytes = 0;
  results *held = push_results(L);
  MR_LUA_TRY(L, mr_file_read(path, &held->text, &bytes));
  lua_pushlstring(L, held->text, (size_t)bytes);
  char *text = held->text;
  held->text = NULL;
  mr_memory_release(text); /* now, not when the collector comes */
  return 1;
}

static int write_file(lua_State *L) {
  size_t bytes = 0;
  const char *path = check_path(L, 1), *text = luaL_checklstring(L, 2, &bytes);
  MR_LUA_TRY(L, mr_file_write(path, text, (int64_t)bytes));
  return 0;
}

static int exists(lua_State *L) {
  lua_pushboolean(L, mr_file_exists(check_path(L, 1)));
  return 1;
}

static int is_folder(lua_State *L) {
  lua_pushboolean(L, mr_folder_exists(check_path(L, 1)));
  return 1;
}

static int file_bytes(lua_State *L) {
  int64_t bytes = mr_file_bytes(check_path(L, 1));
  if (bytes < 0) return 0;
  lua_pushinteger(L, bytes);
  return 1;
}

static int is_link(lua_State *L) {
  lua_pushboolean(L, mr_file_is_link(check_path(L, 1)));
  return 1;
}

static int list(lua_State *L) {
  const char *path = check_path(L, 1);
  results *held = push_results(L);
  MR_LUA_TRY(L, mr_folder_list(path, &held->names));
  lua_newtable(L);
  for (int64_t i = 0; i < held->names.count; i++) {
    lua_pushstring(L, held->names.items[i]);
    lua_seti(L, -2, i + 1);
  }
  mr_names_release(&held->names);
  return 1;
}

static int make_folder(lua_State *L) {
  MR_LUA_TRY(L, mr_folder_make(check_path(L, 1)));
  return 0;
}

static int remove_file(lua_State *L) {
  MR_LUA_TRY(L, mr_file_remove(check_path(L, 1)));
  return 0;
}

static int remove_folder(lua_State *L) {
  const char *root = check_path(L, 1), *name = mr_lua_check_text(L, 2, "a name below the folder");
  MR_LUA_TRY(L, mr_folder_remove(root, name));
  return 0;
}

static int move(lua_State *L) {
  const char *from = check_path(L, 1), *to = check_path(L, 2);
  MR_LUA_TRY(L, mr_file_move(from, to));
  return 0;
}

static int hash_text(lua_State *L) {
  size_t bytes = 0;
  mr_hash_text hash;
  const char *text = luaL_checklstring(L, 1, &bytes);
  MR_LUA_TRY(L, mr_hash_bytes(text, (int64_t)bytes, &hash));
  lua_pushstring(L, hash.digits);
  return 1;
}

static int hash_file(lua_State *L) {
  mr_hash_text hash;
  const char *path = check_path(L, 1);
  if (lua_isnoneornil(L, 2)) {
    MR_LUA_TRY(L, mr_hash_file(path, &hash));
  } else {
    lua_Integer first = luaL_checkinteger(L, 2), bytes = luaL_checkinteger(L, 3);
    MR_LUA_TRY(L, mr_hash_file_range(path, first, bytes, &hash));
  }
  lua_pushstring(L, hash.digits);
  return 1;
}

static int fail_at(lua_State *L) {
  mr_file_fail_at(luaL_checkinteger(L, 1));
  return 0;
}

static int calls(lua_State *L) {
  lua_pushinteger(L, mr_file_calls());
  return 1;
}

static int utc(lua_State *L) {
  char text[MR_CLOCK_TEXT];
  lua_pushstring(L, mr_clock_utc(text));
  return 1;
}

void mr_lua_open_file(lua_State *L) {
  static const luaL_Reg none[] = {{NULL, NULL}};
  static const luaL_Reg metamethods[] = {{"__gc", release_results}, {NULL, NULL}};
  static const luaL_Reg functions[] = {{"read", read_file},
                                       {"write", write_file},
                                       {"exists", exists},
                                       {"is_folder", is_folder},
                                       {"is_link", is_link},
                                       {"bytes", file_bytes},
                                       {"list", list},
                                       {"remove", remove_file},
                                       {"remove_folder", remove_folder},
                                       {"move", move},
                                       {"make_folder", make_folder},
                                       {"sha256", hash_text},
                                       {"sha256_of", hash_file},
                                       {"fail_at", fail_at},
                                       {"calls", calls},
                                       {NULL, NULL}};
  mr_lua_define_type(L, type_name, none, metamethods);
  luaL_newlib(L, functions);
  mr_lua_open_file_objects(L);
  lua_setfield(L, -2, "file");
  lua_pushcfunction(L, utc);
  lua_setfield(L, -2, "utc");
}
