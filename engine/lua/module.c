/* The module marea.core: one context per Lua state, found again when the module is opened anew. */
#include <string.h>

#include "lua/binding.h"

static const char context_key[] = "marea.context";

mr_context *mr_lua_context(lua_State *L) {
  (void)lua_rawgetp(L, LUA_REGISTRYINDEX, context_key);
  mr_context *context = lua_touserdata(L, -1);
  lua_pop(L, 1);
  return context;
}

static int close_context(lua_State *L) {
  mr_context *context = lua_touserdata(L, 1);
  mr_device_release(context->gpu);
  mr_device_release(context->host);
  memset(context, 0, sizeof *context);
  return 0;
}

/* Finalizers run in the reverse order of their making, so the context, made first, outlives every
 * tensor. */
static void make_context(lua_State *L) {
  if (mr_lua_context(L)) return;
  mr_context *context = lua_newuserdatauv(L, sizeof(mr_context), 0);
  memset(context, 0, sizeof *context);
  lua_createtable(L, 0, 1);
  lua_pushcfunction(L, close_context);
  lua_setfield(L, -2, "__gc");
  lua_setmetatable(L, -2);
  lua_rawsetp(L, LUA_REGISTRYINDEX, context_key);
  MR_LUA_TRY(L, mr_device_open_cpu(0, &context->host));
  context->device = context->host;
}

int luaopen_marea_core(lua_State *L) {
  static void (*const parts[])(lua_State *) = {
      mr_lua_open_fault,     mr_lua_open_tensor,      mr_lua_open_ops,         mr_lua_open_memory,
      mr_lua_open_random,    mr_lua_open_file,        mr_lua_open_safetensors, mr_lua_open_corpus,
      mr_lua_open_world,     mr_lua_open_collectives, mr_lua_open_unit,        mr_lua_open_reducer,
      mr_lua_open_optimizer, mr_lua_open_compare,     mr_lua_open_process,     mr_lua_open_bench,
      mr_lua_open_device};
  make_context(L);
  lua_newtable(L);
  for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) parts[i](L);
  return 1;
}
