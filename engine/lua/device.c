/* Devices: which one new tensors lie on, and what it is.
 *
 * core.use_device(name, ordinal) makes the CPU ("cpu") or a GPU ("cuda", ordinal) that of all
 * tensors to come; those that there are stay where they lie. core.count_cuda() -> GPUs. */
#include "device/device.h"

#include <string.h>

#include "device/cuda.h"
#include "lua/binding.h"

static void set_string(lua_State *L, const char *name, const char *value) {
  lua_pushstring(L, value);
  lua_setfield(L, -2, name);
}

/* core.device() -> {name, instruction_set, blas, model, place, threads, kernel_calls, waits} */
static int read_device(lua_State *L) {
  const mr_device *device = mr_lua_context(L)->device;
  lua_createtable(L, 0, 8);
  set_string(L, "name", device->name);
  set_string(L, "instruction_set", device->instruction_set);
  set_string(L, "blas", device->blas);
  set_string(L, "model", device->model);
  set_string(L, "place", device->place);
  lua_pushinteger(L, device->launch.threads);
  lua_setfield(L, -2, "threads");
  lua_pushinteger(L, device->kernel_calls);
  lua_setfield(L, -2, "kernel_calls");
  lua_pushinteger(L, device->waits);
  lua_setfield(L, -2, "waits");
  return 1;
}

/* core.set_threads(n): how many threads kernels use from now on; the bits stay the same. */
static int set_threads(lua_State *L) {
  mr_context *context = mr_lua_context(L);
  lua_Integer threads = luaL_checkinteger(L, 1);
  luaL_argcheck(L, threads >= 1 && threads <= 4096, 1, "expected 1 to 4096 threads");
  context->device->launch.threads = (int)threads;
  context->host->launch.threads = (int)threads;
  return 0;
}

/* A process computes on one GPU: launches go to the device that CUDA holds for current. */
static mr_device *open_cuda(lua_State *L, mr_context *context, lua_Integer ordinal) {
  const char *name = lua_pushfstring(L, "cuda:%I", (LUAI_UACINT)ordinal);
  if (ordinal < 0 || ordinal > INT32_MAX)
    (void)mr_lua_error(L, MR_ERROR_ENVIRONMENT, "there is no %s", name);
  if (!context->gpu)
    MR_LUA_TRY(L, mr_device_open_cuda((int)ordinal, context->host->launch.threads, &context->gpu));
  if (strcmp(context->gpu->name, name) != 0)
    (void)mr_lua_error(L, MR_ERROR_ARGUMENT, "this process computes on %s and cannot use %s too",
                       context->gpu->name, name);
  return context->gpu;
}

static int use_device(lua_State *L) {
  mr_context *context = mr_lua_context(L);
  const char *name = luaL_checkstring(L, 1);
  if (strcmp(name, "cpu") == 0)
    context->device = context->host;
  else if (strcmp(name, "cuda") == 0)
    context->device = open_cuda(L, context, luaL_checkinteger(L, 2));
  else
    return mr_lua_error(L, MR_ERROR_ARGUMENT, "there is no device '%s'; there are cpu and cuda",
                        name);
  context->lowest_bytes = context->device->memory_used(context->device).live_bytes;
  return 0;
}

static int count_cuda(lua_State *L) {
  int count = 0;
  MR_LUA_TRY(L, mr_device_count_cuda(&count));
  lua_pushinteger(L, count);
  return 1;
}

/* core.finish(): returns when the device has done everything that was asked of it. */
static int finish(lua_State *L) {
  mr_device *device = mr_lua_context(L)->device;
  MR_LUA_TRY(L, device->finish_sync(device));
  return 0;
}

void mr_lua_open_device(lua_State *L) {
  static const luaL_Reg functions[] = {{"device", read_device},    {"set_threads", set_threads},
                                       {"use_device", use_device}, {"count_cuda", count_cuda},
                                       {"finish", finish},         {NULL, NULL}};
  luaL_setfuncs(L, functions, 0);
}
