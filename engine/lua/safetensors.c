/* core.safetensors: files of named tensors.
 *
 * write(path, {{name, tensor}, ...}, metadata?) writes a file as a whole; metadata is a table of
 * strings by string. open(path) -> file: names(), has(name), shape(name), dtype(name) (ours as
 * "f32", others as published: "F16"), tensor(name) (a copy), metadata(), path(), close(). */
#include "lua/safetensors.h"

#include <string.h>

#include "base/dtype.h"
#include "lua/binding.h"
#include "lua/text.h"

static const char type_name[] = "marea.safetensors";

typedef struct box {
  mr_safetensors *file;
} box;

static mr_safetensors *check_file(lua_State *L) {
  box *held = luaL_checkudata(L, 1, type_name);
  if (!held->file) (void)mr_lua_error(L, MR_ERROR_ARGUMENT, "this tensor file is closed");
  return held->file;
}

static int close_file(lua_State *L) {
  box *held = luaL_checkudata(L, 1, type_name);
  mr_safetensors *file = held->file;
  held->file = NULL;
  mr_safetensors_release(file);
  return 0;
}

static int to_text(lua_State *L) {
  box *held = luaL_checkudata(L, 1, type_name);
  lua_pushfstring(L, "safetensors<%s>", held->file ? mr_safetensors_path(held->file) : "closed");
  return 1;
}

/* Reading */

static int open_file(lua_State *L) {
  const char *path = mr_lua_check_text(L, 1, "a path");
  box *shell = lua_newuserdatauv(L, sizeof(box), 0);
  shell->file = NULL;
  luaL_setmetatable(L, type_name);
  MR_LUA_TRY(L, mr_safetensors_open(path, &shell->file));
  return 1;
}

void mr_lua_push_names(lua_State *L, const mr_safetensors *file) {
  lua_newtable(L);
  for (int64_t i = 0; i < mr_safetensors_count(file); i++) {
    lua_pushstring(L, mr_safetensors_at(file, i)->name);
    lua_seti(L, -2, i + 1);
  }
}

void mr_lua_push_metadata(lua_State *L, const mr_safetensors *file) {
  lua_newtable(L);
  for (int64_t i = 0; i < mr_safetensors_metadata_count(file); i++) {
    mr_safetensors_pair pair = mr_safetensors_metadata_at(file, i);
    lua_pushstring(L, pair.value);
    lua_setfield(L, -2, pair.key);
  }
}

void mr_lua_push_stored(lua_State *L, const mr_safetensors *file, const char *name) {
  mr_tensor **slot = mr_lua_push_tensor_shell(L);
  MR_LUA_TRY(L, mr_safetensors_tensor(file, name, mr_lua_context(L)->device, slot));
  mr_lua_tensor_made(L);
}

static int names(lua_State *L) {
  mr_lua_push_names(L, check_file(L));
  return 1;
}

static int metadata(lua_State *L) {
  mr_lua_push_metadata(L, check_file(L));
  return 1;
}

static int path(lua_State *L) {
  lua_pushstring(L, mr_safetensors_path(check_file(L)));
  return 1;
}

static int has(lua_State *L) {
  const mr_safetensors *file = check_file(L);
  const mr_safetensors_entry *entry = NULL;
  lua_pushboolean(
      L, mr_safetensors_find(file, mr_lua_check_text(L, 2, "a tensor's name"), &entry) == MR_OK);
  return 1;
}

static const mr_safetensors_entry *check_entry(lua_State *L) {
  const mr_safetensors *file = check_file(L);
  const mr_safetensors_entry *entry = NULL;
  MR_LUA_TRY(L, mr_safetensors_find(file, mr_lua_check_text(L, 2, "a tensor's name"), &entry));
  return entry;
}

static int shape(lua_State *L) {
  const mr_safetensors_entry *entry = check_entry(L);
  lua_newtable(L);
  for (int64_t i = 0; i < entry->axes; i++) {
    lua_pushinteger(L, entry->extents[i]);
    lua_seti(L, -2, i + 1);
  }
  return 1;
}

static int dtype(lua_State *L) {
  const mr_safetensors_entry *entry = check_entry(L);
  lua_pushstring(L, entry->dtype >= 0 ? mr_dtype_name((mr_dtype)entry->dtype) : entry->dtype_name);
  return 1;
}

static int tensor(lua_State *L) {
  const mr_safetensors *file = check_file(L);
  mr_lua_push_stored(L, file, mr_lua_check_text(L, 2, "a tensor's name"));
  return 1;
}

/* Writing */

/* The list at `index` as items that borrow its strings and tensors; pushes their block. */
static mr_safetensors_item *push_items(lua_State *L, int index, int64_t *count) {
  luaL_checktype(L, index, LUA_TTABLE);
  *count = luaL_len(L, index);
  mr_safetensors_item *items = lua_newuserdatauv(L, (size_t)*count * sizeof *items, 0);
  for (int64_t i = 0; i < *count; i++) {
    if (lua_geti(L, index, i + 1) != LUA_TTABLE)
      (void)mr_lua_error(L, MR_ERROR_ARGUMENT, "item %lld must be {name, tensor}, got %s",
                         (long long)i + 1, luaL_typename(L, -1));
    (void)lua_geti(L, -1, 1);
    (void)lua_geti(L, -2, 2);
    const char *name = mr_lua_check_text(L, -2, "a tensor's name");
    const mr_tensor *value = mr_lua_test_tensor(L, -1);
    if (!value)
      (void)mr_lua_error(L, MR_ERROR_ARGUMENT, "item %lld, '%s', must be a tensor, got %s",
                         (long long)i + 1, name, luaL_typename(L, -1));
    items[i] = (mr_safetensors_item){name, value};
    lua_pop(L, 3);
  }
  return items;
}

/* The table of strings at `index`, or nil, as pairs that borrow them; pushes their block. */
static mr_safetensors_pair *push_pairs(lua_State *L, int index, int64_t *count) {
  *count = 0;
  if (!lua_isnoneornil(L, index)) {
    luaL_checktype(L, index, LUA_TTABLE);
    for (lua_pushnil(L); lua_next(L, index); lua_pop(L, 1)) ++*count;
  }
  mr_safetensors_pair *pairs = lua_newuserdatauv(L, (size_t)*count * sizeof *pairs, 0);
  if (*count == 0) return pairs;
  int64_t next = 0;
  for (lua_pushnil(L); lua_next(L, index); lua_pop(L, 1)) {
    const char *key = mr_lua_check_text(L, -2, "a string as metadata key");
    pairs[next++] = (mr_safetensors_pair){key, mr_lua_check_text(L, -1, "a string as metadata")};
  }
  return pairs;
}

static int write_file(lua_State *L) {
  int64_t count = 0, pairs = 0;
  lua_settop(L, 3);
  const char *target = mr_lua_check_text(L, 1, "a path");
  const mr_safetensors_item *items = push_items(L, 2, &count);
  const mr_safetensors_pair *metadata_pairs = push_pairs(L, 3, &pairs);
  MR_LUA_TRY(L, mr_safetensors_write(target, count, items, pairs, metadata_pairs));
  return 0;
}

void mr_lua_open_safetensors(lua_State *L) {
  static const luaL_Reg methods[] = {
      {"names", names}, {"has", has},          {"shape", shape},
      {"dtype", dtype}, {"tensor", tensor},    {"metadata", metadata},
      {"path", path},   {"close", close_file}, {NULL, NULL}};
  static const luaL_Reg metamethods[] = {
      {"__gc", close_file}, {"__close", close_file}, {"__tostring", to_text}, {NULL, NULL}};
  static const luaL_Reg functions[] = {{"open", open_file}, {"write", write_file}, {NULL, NULL}};
  mr_lua_define_type(L, type_name, methods, metamethods);
  luaL_newlib(L, functions);
  lua_setfield(L, -2, "safetensors");
}
