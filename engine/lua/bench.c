/* What `marea bench` measures with.
 *
 * core.products(loss) -> the matrix products behind a loss: run() -> seconds, operations() ->
 * {single =, batched =}, shapes() -> list of {count, batched, m, n, k}
 * core.profile(on) switches the time of each operation on, anew, or off; core.profiled() -> list of
 * {name, calls, forward, backward}
 * core.bind_threads() -> whether each thread now has a core of its own
 * core.plain_all_reduce(group, tensor) sums f32 in place as MPI does it by itself
 * core.nap(seconds) sleeps
 * core.spin(seconds) -> share of the time in which spinning threads were not running */
#define _POSIX_C_SOURCE 200809L
#include <math.h>
#include <time.h>

#include "base/clock.h"
#include "device/cores.h"
#include "grad/products.h"
#include "grad/profile.h"
#include "lua/binding.h"
#include "lua/world.h"

static const char type_name[] = "marea.products";

typedef struct box {
  mr_products *products;
} box;

static mr_products *check_products(lua_State *L) {
  box *held = luaL_checkudata(L, 1, type_name);
  if (!held->products) (void)mr_lua_error(L, MR_ERROR_ARGUMENT, "the products were closed");
  return held->products;
}

static int collect(lua_State *L) {
  box *held = luaL_checkudata(L, 1, type_name);
  mr_products_release(held->products);
  held->products = NULL;
  return 0;
}

static int new_products(lua_State *L) {
  mr_tensor *loss = mr_lua_check_tensor(L, 1);
  box *shell = lua_newuserdatauv(L, sizeof(box), 0);
  shell->products = NULL;
  luaL_setmetatable(L, type_name);
  MR_LUA_TRY(L, mr_tensor_readable(loss, "the loss"));
  MR_LUA_TRY(L, mr_products_new(&mr_lua_context(L)->tape, loss, &shell->products));
  return 1;
}

static int run_products(lua_State *L) {
  mr_products *products = check_products(L);
  double began = mr_clock_seconds();
  MR_LUA_TRY(L, mr_products_run_sync(products));
  lua_pushnumber(L, mr_clock_seconds() - began);
  return 1;
}

static int read_operations(lua_State *L) {
  const mr_products *products = check_products(L);
  lua_createtable(L, 0, 2);
  lua_pushnumber(L, mr_products_operations(products, 0));
  lua_setfield(L, -2, "single");
  lua_pushnumber(L, mr_products_operations(products, 1));
  lua_setfield(L, -2, "batched");
  return 1;
}

static void set_integer(lua_State *L, const char *name, int64_t value) {
  lua_pushinteger(L, value);
  lua_setfield(L, -2, name);
}

static int read_shapes(lua_State *L) {
  const mr_products *products = check_products(L);
  lua_newtable(L);
  for (int64_t i = 0; i < mr_products_count(products); i++) {
    mr_product_shape shape = mr_products_shape(products, i);
    lua_createtable(L, 0, 5);
    set_integer(L, "count", shape.count);
    lua_pushboolean(L, shape.batched);
    lua_setfield(L, -2, "batched");
    set_integer(L, "m", shape.m);
    set_integer(L, "n", shape.n);
    set_integer(L, "k", shape.k);
    lua_seti(L, -2, i + 1);
  }
  return 1;
}

/* The profile lives in the registry while it is switched on. */
static int switch_profile(lua_State *L) {
  static const char key[] = "marea.profile";
  mr_tape *tape = &mr_lua_context(L)->tape;
  tape->profile = NULL;
  if (!lua_toboolean(L, 1)) return 0;
  mr_profile *profile = lua_newuserdatauv(L, sizeof(mr_profile), 0);
  profile->rows = 0;
  lua_setfield(L, LUA_REGISTRYINDEX, key);
  tape->profile = profile;
  return 0;
}

static int read_profile(lua_State *L) {
  const mr_profile *profile = mr_lua_context(L)->tape.profile;
  lua_newtable(L);
  for (int i = 0; profile && i < profile->rows; i++) {
    const mr_profile_row *row = &profile->row[i];
    lua_createtable(L, 0, 4);
    lua_pushstring(L, row->op->name);
    lua_setfield(L, -2, "name");
    set_integer(L, "calls", row->calls);
    lua_pushnumber(L, row->forward);
    lua_setfield(L, -2, "forward");
    lua_pushnumber(L, row->backward);
    lua_setfield(L, -2, "backward");
    lua_seti(L, -2, i + 1);
  }
  return 1;
}

static int bind_threads(lua_State *L) {
  int bound = 0;
  mr_device_bind_cpu(mr_lua_context(L)->device, &bound);
  lua_pushboolean(L, bound);
  return 1;
}

static int plain_all_reduce(lua_State *L) {
  mr_group *group = mr_lua_check_group(L, 1);
  mr_tensor *tensor = mr_lua_check_tensor(L, 2);
  MR_LUA_TRY(L, mr_tensor_readable(tensor, "the tensor"));
  luaL_argcheck(L, tensor->dtype == MR_F32, 2, "expected an f32 tensor");
  luaL_argcheck(L, mr_tensor_device(tensor)->host_memory, 2, "expected a tensor of the CPU");
  MR_LUA_TRY(L, mr_group_plain_all_reduce(group, mr_tensor_data(tensor), tensor->count));
  mr_tensor_changed(tensor);
  return 0;
}

static int spin(lua_State *L) {
  double seconds = luaL_checknumber(L, 1);
  luaL_argcheck(L, seconds > 0 && seconds <= 60, 1, "expected a time of at most 60 seconds");
  lua_pushnumber(L, mr_device_spin_cpu(mr_lua_context(L)->device, seconds));
  return 1;
}

static int nap(lua_State *L) {
  double seconds = luaL_checknumber(L, 1);
  luaL_argcheck(L, seconds >= 0 && seconds <= 60, 1, "expected a time of at most 60 seconds");
  struct timespec time = {(time_t)seconds, (long)((seconds - floor(seconds)) * 1e9)};
  (void)nanosleep(&time, NULL);
  return 0;
}

void mr_lua_open_bench(lua_State *L) {
  static const luaL_Reg methods[] = {{"run", run_products},
                                     {"operations", read_operations},
                                     {"shapes", read_shapes},
                                     {NULL, NULL}};
  static const luaL_Reg metamethods[] = {{"__gc", collect}, {"__close", collect}, {NULL, NULL}};
  static const luaL_Reg functions[] = {{"products", new_products},
                                       {"profile", switch_profile},
                                       {"profiled", read_profile},
                                       {"bind_threads", bind_threads},
                                       {"spin", spin},
                                       {"nap", nap},
                                       {"plain_all_reduce", plain_all_reduce},
                                       {NULL, NULL}};
  mr_lua_define_type(L, type_name, methods, metamethods);
  luaL_setfuncs(L, functions, 0);
}
