/* core.memory: bytes live and at the peak on the device, and the hook that makes requests fail. */
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

/* core.device(): what runs the kernels, for run.json and doctor. */
static int read_device(lua_State *L) {
  const mr_device *device = mr_lua_context(L)->device;
  lua_createtable(L, 0, 5);
  lua_pushinteger(L, device->kernel_calls);
  lua_setfield(L, -2, "kernel_calls");
  lua_pushstring(L, device->name);
  lua_setfield(L, -2, "name");
  lua_pushstring(L, device->instruction_set);
  lua_setfield(L, -2, "instruction_set");
  lua_pushstring(L, device->blas);
  lua_setfield(L, -2, "blas");
  lua_pushinteger(L, device->launch.threads);
  lua_setfield(L, -2, "threads");
  return 1;
}

/* core.set_threads(n): how many threads kernels use from now on; the bits stay the same. */
static int set_threads(lua_State *L) {
  lua_Integer threads = luaL_checkinteger(L, 1);
  luaL_argcheck(L, threads >= 1 && threads <= 4096, 1, "expected 1 to 4096 threads");
  mr_lua_context(L)->device->launch.threads = (int)threads;
  return 0;
}

void mr_lua_open_memory(lua_State *L) {
  static const luaL_Reg functions[] = {
      {"memory", read_memory}, {"memory_reset_peak", reset_peak}, {"memory_fail_at", fail_at},
      {"device", read_device}, {"set_threads", set_threads},      {NULL, NULL}};
  luaL_setfuncs(L, functions, 0);
}
