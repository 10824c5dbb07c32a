/* core.memory: bytes live and at the peak on the device, and the hook that makes requests for host
 * memory fail. */
#include "base/memory.h"

#include "lua/binding.h"

static int read_memory(lua_State *L) {
  mr_device *device = mr_lua_context(L)->device;
  mr_memory_use use = device->memory_used(device);
  lua_createtable(L, 0, 3);
  lua_pushinteger(L, use.live_bytes);
  lua_setfield(L, -2, "live");
  lua_pushinteger(L, use.peak_bytes);
  lua_setfield(L, -2, "peak");
  lua_pushinteger(L, use.requests);
  lua_setfield(L, -2, "requests");
  return 1;
}

static int reset_peak(lua_State *L) {
  mr_device *device = mr_lua_context(L)->device;
  device->reset_peak(device);
  return 0;
}

static int fail_at(lua_State *L) {
  mr_memory_fail_at(luaL_checkinteger(L, 1));
  return 0;
}

void mr_lua_open_memory(lua_State *L) {
  static const luaL_Reg functions[] = {{"memory", read_memory},
                                       {"memory_reset_peak", reset_peak},
                                       {"memory_fail_at", fail_at},
                                       {NULL, NULL}};
  luaL_setfuncs(L, functions, 0);
}
