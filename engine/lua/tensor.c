/* The userdata `tensor`: making, reading, changing; operations are added by ops.c. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "comm/comm.h"
#include "kernels/bf16.h"
#include "lua/binding.h"

static const char type_name[] = "marea.tensor";

typedef struct box {
  mr_tensor *tensor;
} box;

/* Under the address of its name too: found without making a string of it, as every argument of
 * every operation needs it. */
static void push_metatable(lua_State *L) { (void)lua_rawgetp(L, LUA_REGISTRYINDEX, type_name); }

static box *test_box(lua_State *L, int index) {
  box *held = lua_touserdata(L, index);
  if (!held || !lua_getmetatable(L, index)) return NULL;
  push_metatable(L);
  if (!lua_rawequal(L, -1, -2)) held = NULL;
  lua_pop(L, 2);
  return held;
}

mr_tensor **mr_lua_push_tensor_shell(lua_State *L) {
  box *shell = lua_newuserdatauv(L, sizeof(box), 0);
  shell->tensor = NULL;
  push_metatable(L);
  lua_setmetatable(L, -2);
  return &shell->tensor;
}

/* The collector sees a few bytes per userdata and not the tensor behind it. It runs when live
 * memory has grown by 64 MiB, and by half, since it was lowest; by twice that once a run freed
 * little, until one frees more: a training loop, whose memory comes and goes with each forward,
 * pays for no collection. */
static void tell_of_growth(lua_State *L, mr_context *context) {
  int64_t live = context->device->memory_used(context->device).live_bytes;
  int64_t allowed = (int64_t)64 << 20, grown = live - context->lowest_bytes;
  if (context->lowest_bytes / 2 > allowed) allowed = context->lowest_bytes / 2;
  if (context->freed_little) allowed *= 2;
  if (grown >= allowed) {
    lua_gc(L, LUA_GCCOLLECT);
    context->lowest_bytes = context->device->memory_used(context->device).live_bytes;
    context->freed_little = live - context->lowest_bytes < grown / 4;
  } else if (live < context->lowest_bytes) {
    context->lowest_bytes = live;
  }
}

/* Of a tensor of a few elements the collector is told an eighth of what it takes with its node, as
 * if Lua had allocated that: so what loops over small operations drop is reused while it is still
 * in a cache. A training loop makes next to none. */
static void tell_of_small(lua_State *L, mr_context *context) {
  context->untold_bytes += 128;
  if (context->untold_bytes < 1024) return;
  context->untold_bytes = 0;
  if (lua_gc(L, LUA_GCISRUNNING)) lua_gc(L, LUA_GCSTEP, 1);
}

void mr_lua_result_made(lua_State *L, mr_context *context, const mr_tensor *tensor) {
  tell_of_growth(L, context);
  if (tensor->count <= 64) tell_of_small(L, context);
}

void mr_lua_tensor_made(lua_State *L) {
  const box *held = lua_touserdata(L, -1);
  mr_lua_result_made(L, mr_lua_context(L), held->tensor);
}

mr_tensor *mr_lua_test_tensor(lua_State *L, int index) {
  const box *held = test_box(L, index);
  return held ? held->tensor : NULL;
}

mr_tensor *mr_lua_check_tensor(lua_State *L, int index) {
  mr_tensor *tensor = mr_lua_test_tensor(L, index);
  if (!tensor && test_box(L, index))
    (void)mr_lua_error(L, MR_ERROR_ARGUMENT,
                       "the tensor given as argument %d was released: batches and weights last "
                       "until their window ends; keep a copy() of what is needed longer",
                       index);
  if (!tensor)
    (void)mr_lua_error(L, MR_ERROR_ARGUMENT, "expected a tensor as argument %d, got %s", index,
                       luaL_typename(L, index));
  return tensor;
}

static int collect(lua_State *L) {
  box *held = test_box(L, 1);
  if (!held) held = luaL_checkudata(L, 1, type_name); /* raises */
  mr_tensor *tensor = held->tensor;
  held->tensor = NULL;
  mr_tensor_release(tensor);
  return 0;
}

static int to_text(lua_State *L) {
  char text[128];
  const mr_tensor *tensor = mr_lua_test_tensor(L, 1);
  if (!tensor) return lua_pushliteral(L, "tensor<released>"), 1;
  const char *where = tensor->ended ? "ended" : mr_tensor_device(tensor)->name;
  lua_pushfstring(L, "tensor<%s,%s,%s>", mr_dtype_name(tensor->dtype),
                  mr_shape_text(&tensor->shape, text), where);
  return 1;
}

/* --- making: on the device of the state, or, as core.host.zeros and so on, on the CPU --- */

static mr_device *device_of_function(lua_State *L) {
  const mr_context *context = mr_lua_context(L);
  return lua_toboolean(L, lua_upvalueindex(1)) ? context->host : context->device;
}

static mr_tensor *push_new(lua_State *L, mr_dtype dtype, const mr_shape *shape) {
  mr_tensor **slot = mr_lua_push_tensor_shell(L);
  MR_LUA_TRY(L, mr_tensor_new(device_of_function(L), dtype, shape, slot));
  mr_lua_tensor_made(L);
  return *slot;
}

static void write_number(lua_State *L, int index, mr_dtype dtype, void *host, int64_t i) {
  int good = 0;
  if (mr_dtype_is_real(dtype)) {
    double value = lua_tonumberx(L, index, &good);
    if (!good || lua_type(L, index) == LUA_TSTRING)
      (void)mr_lua_error(L, MR_ERROR_ARGUMENT, "element %lld must be a number, got %s",
                         (long long)i + 1, luaL_typename(L, index));
    if (dtype == MR_F32)
      ((float *)host)[i] = (float)value;
    else if (dtype == MR_BF16)
      ((mr_bf16 *)host)[i] = mr_bf16_from_f64(value);
    else
      ((double *)host)[i] = value;
    return;
  }
  lua_Integer value = lua_tointegerx(L, index, &good);
  if (!good)
    (void)mr_lua_error(L, MR_ERROR_ARGUMENT, "element %lld must be an integer, got %s",
                       (long long)i + 1, luaL_tolstring(L, index, NULL));
  if (dtype == MR_I32 && (value < INT32_MIN || value > INT32_MAX))
    (void)mr_lua_error(L, MR_ERROR_ARGUMENT, "element %lld is %lld, which does not fit an i32",
                       (long long)i + 1, (long long)value);
  if (dtype == MR_I32)
    ((int32_t *)host)[i] = (int32_t)value;
  else
    ((int64_t *)host)[i] = value;
}

static void fill_with(lua_State *L, mr_tensor *tensor, int index) {
  int64_t size = mr_dtype_size(tensor->dtype);
  char *host = lua_newuserdatauv(L, (size_t)(tensor->count * size), 0);
  if (tensor->count) write_number(L, index, tensor->dtype, host, 0);
  for (int64_t i = 1; i < tensor->count; i++) memcpy(host + i * size, host, (size_t)size);
  MR_LUA_TRY(L, mr_tensor_write(tensor, host));
  lua_pop(L, 1);
}

static int make_zeros(lua_State *L) {
  mr_shape shape = mr_lua_check_shape(L, 1);
  push_new(L, mr_lua_check_dtype(L, 2, MR_F32), &shape);
  return 1;
}

static int make_ones(lua_State *L) {
  mr_shape shape = mr_lua_check_shape(L, 1);
  mr_tensor *tensor = push_new(L, mr_lua_check_dtype(L, 2, MR_F32), &shape);
  lua_pushinteger(L, 1);
  fill_with(L, tensor, lua_gettop(L));
  lua_pop(L, 1);
  return 1;
}

static int make_full(lua_State *L) {
  mr_shape shape = mr_lua_check_shape(L, 1);
  mr_tensor *tensor = push_new(L, mr_lua_check_dtype(L, 3, MR_F32), &shape);
  fill_with(L, tensor, 2);
  return 1;
}

/* Extents of a nested table, read down its first elements. */
static mr_shape nested_shape(lua_State *L, int index) {
  mr_shape shape = {0};
  lua_pushvalue(L, index);
  while (lua_istable(L, -1)) {
    if (shape.axes == MR_MAX_AXES)
      (void)mr_lua_error(L, MR_ERROR_ARGUMENT, "a tensor has at most %d axes", MR_MAX_AXES);
    shape.extent[shape.axes++] = luaL_len(L, -1);
    lua_geti(L, -1, 1);
    lua_remove(L, -2);
  }
  lua_pop(L, 1);
  return shape;
}

static void write_nested(lua_State *L, int index, const mr_shape *shape, int axis, mr_dtype dtype,
                         void *host, int64_t *next) {
  if (axis == shape->axes) {
    write_number(L, index, dtype, host, (*next)++);
    return;
  }
  if (!lua_istable(L, index) || luaL_len(L, index) != shape->extent[axis])
    (void)mr_lua_error(L, MR_ERROR_ARGUMENT, "rows of a tensor must have equal lengths");
  index = lua_absindex(L, index);
  for (int64_t i = 1; i <= shape->extent[axis]; i++) {
    lua_geti(L, index, i);
    write_nested(L, -1, shape, axis + 1, dtype, host, next);
    lua_pop(L, 1);
  }
}

static int make_from(lua_State *L) {
  luaL_checktype(L, 1, LUA_TTABLE);
  mr_dtype dtype = mr_lua_check_dtype(L, 2, MR_F32);
  mr_shape nested = nested_shape(L, 1), shape = nested;
  int64_t given = 0, wanted = 0, next = 0;
  if (!lua_isnoneornil(L, 3)) shape = mr_lua_check_shape(L, 3);
  MR_LUA_TRY(L, mr_shape_count(&nested, &given));
  MR_LUA_TRY(L, mr_shape_count(&shape, &wanted));
  if (given != wanted)
    return mr_lua_error(L, MR_ERROR_ARGUMENT,
                        "the shape asks for %lld elements, the table has %lld", (long long)wanted,
                        (long long)given);
  mr_tensor *tensor = push_new(L, dtype, &shape);
  void *host = lua_newuserdatauv(L, (size_t)(wanted * mr_dtype_size(dtype)), 0);
  write_nested(L, 1, &nested, 0, dtype, host, &next);
  MR_LUA_TRY(L, mr_tensor_write(tensor, host));
  lua_pop(L, 1);
  return 1;
}

/* --- reading --- */

static mr_tensor *check_readable(lua_State *L, int index) {
  mr_tensor *tensor = mr_lua_check_tensor(L, index);
  MR_LUA_TRY(L, mr_tensor_readable(tensor, "this tensor"));
  return tensor;
}

static void push_element(lua_State *L, mr_dtype dtype, const void *host, int64_t i) {
  switch (dtype) {
    case MR_F32:
      lua_pushnumber(L, (double)((const float *)host)[i]);
      break;
    case MR_F64:
      lua_pushnumber(L, ((const double *)host)[i]);
      break;
    case MR_BF16:
      lua_pushnumber(L, (double)mr_bf16_to_f32(((const mr_bf16 *)host)[i]));
      break;
    case MR_I32:
      lua_pushinteger(L, ((const int32_t *)host)[i]);
      break;
    default:
      lua_pushinteger(L, ((const int64_t *)host)[i]);
      break;
  }
}

static const void *host_copy(lua_State *L, const mr_tensor *tensor) {
  void *host = lua_newuserdatauv(L, (size_t)mr_tensor_bytes(tensor), 0);
  MR_LUA_TRY(L, mr_tensor_read_sync(tensor, host));
  return host;
}

static int read_shape(lua_State *L) {
  mr_lua_push_shape(L, &mr_lua_check_tensor(L, 1)->shape);
  return 1;
}

/* device() -> the name of the device that it lies on */
static int read_device(lua_State *L) {
  lua_pushstring(L, mr_tensor_device(check_readable(L, 1))->name);
  return 1;
}

static int read_dtype(lua_State *L) {
  lua_pushstring(L, mr_dtype_name(mr_lua_check_tensor(L, 1)->dtype));
  return 1;
}

static int read_count(lua_State *L) {
  lua_pushinteger(L, mr_lua_check_tensor(L, 1)->count);
  return 1;
}

static int read_item(lua_State *L) {
  char text[128];
  mr_tensor *tensor = check_readable(L, 1);
  if (tensor->count != 1)
    return mr_lua_error(L, MR_ERROR_ARGUMENT, "item() needs one element, this tensor is %s",
                        mr_shape_text(&tensor->shape, text));
  push_element(L, tensor->dtype, host_copy(L, tensor), 0);
  return 1;
}

static int read_values(lua_State *L) {
  mr_tensor *tensor = check_readable(L, 1);
  const void *host = host_copy(L, tensor);
  lua_createtable(L, (int)(tensor->count < INT32_MAX ? tensor->count : INT32_MAX), 0);
  for (int64_t i = 0; i < tensor->count; i++) {
    push_element(L, tensor->dtype, host, i);
    lua_seti(L, -2, i + 1);
  }
  return 1;
}

static int64_t check_position(lua_State *L, const mr_tensor *tensor, int index) {
  lua_Integer position = luaL_checkinteger(L, index);
  if (position < 1 || position > tensor->count)
    (void)mr_lua_error(L, MR_ERROR_ARGUMENT, "element %lld of a tensor with %lld",
                       (long long)position, (long long)tensor->count);
  return position - 1;
}

/* A view of one element, as a tensor of its own on the stack. */
static mr_tensor *push_element_view(lua_State *L, mr_tensor *tensor, int64_t i) {
  mr_shape one = {0};
  mr_tensor **slot = mr_lua_push_tensor_shell(L);
  MR_LUA_TRY(L, mr_tensor_view(tensor, i, &one, slot));
  return *slot;
}

static int read_element(lua_State *L) {
  char host[8] = {0};
  mr_tensor *tensor = check_readable(L, 1);
  mr_tensor *element = push_element_view(L, tensor, check_position(L, tensor, 2));
  MR_LUA_TRY(L, mr_tensor_read_sync(element, host));
  double aligned;
  memcpy(&aligned, host, sizeof aligned);
  push_element(L, tensor->dtype, &aligned, 0);
  return 1;
}

static int read_total(lua_State *L) {
  double total = 0;
  MR_LUA_TRY(L, mr_tensor_total_sync(check_readable(L, 1), &total));
  lua_pushnumber(L, total);
  return 1;
}

/* deferred_total() -> the total as an f64 scalar, whose item() waits for it */
static int make_total(lua_State *L) {
  mr_tensor *tensor = check_readable(L, 1);
  mr_tensor **slot = mr_lua_push_tensor_shell(L);
  MR_LUA_TRY(L, mr_tensor_total(tensor, slot));
  return 1;
}

static mr_status hash_parts(mr_hash *hash, const char *head, const void *data, int64_t bytes,
                            mr_hash_text *text) {
  MR_TRY(mr_hash_add(hash, head, (int64_t)strlen(head)));
  MR_TRY(mr_hash_add(hash, data, bytes));
  return mr_hash_finish(hash, text);
}

/* SHA-256 over "dtype [shape]" and the bytes. */
static int read_hash(lua_State *L) {
  char head[192], shape[128];
  mr_hash_text text;
  mr_hash *hash = NULL;
  mr_tensor *tensor = check_readable(L, 1);
  const void *host = host_copy(L, tensor);
  (void)snprintf(head, sizeof head, "%s %s", mr_dtype_name(tensor->dtype),
                 mr_shape_text(&tensor->shape, shape));
  MR_LUA_TRY(L, mr_hash_new(&hash));
  mr_status status = hash_parts(hash, head, host, mr_tensor_bytes(tensor), &text);
  mr_hash_release(hash);
  MR_LUA_TRY(L, status);
  lua_pushstring(L, text.digits);
  return 1;
}

static int read_gradient(lua_State *L) {
  mr_tensor *tensor = mr_lua_check_tensor(L, 1);
  if (!tensor->gradient) return lua_pushnil(L), 1;
  mr_tensor **slot = mr_lua_push_tensor_shell(L);
  *slot = mr_tensor_retain(tensor->gradient);
  return 1;
}

/* is_same(other): whether both are the same elements in memory. */
static int read_is_same(lua_State *L) {
  mr_tensor *a = check_readable(L, 1), *b = check_readable(L, 2);
  lua_pushboolean(L, mr_tensor_data(a) == mr_tensor_data(b) && a->count == b->count);
  return 1;
}

static int read_requires_gradient(lua_State *L) {
  lua_pushboolean(L, mr_lua_check_tensor(L, 1)->requires_gradient);
  return 1;
}

/* --- copies --- */

static int make_converted(lua_State *L) {
  mr_tensor *tensor = check_readable(L, 1);
  mr_dtype dtype = mr_lua_check_dtype(L, 2, -1);
  mr_tensor **slot = mr_lua_push_tensor_shell(L);
  MR_LUA_TRY(L, mr_tensor_convert(tensor, dtype, slot));
  mr_lua_tensor_made(L);
  return 1;
}

static int make_copy(lua_State *L) {
  mr_tensor *tensor = check_readable(L, 1);
  mr_tensor **slot = mr_lua_push_tensor_shell(L);
  MR_LUA_TRY(L, mr_tensor_convert(tensor, tensor->dtype, slot));
  mr_lua_tensor_made(L);
  return 1;
}

static int make_detached(lua_State *L) {
  mr_tensor *tensor = check_readable(L, 1);
  mr_tensor **slot = mr_lua_push_tensor_shell(L);
  MR_LUA_TRY(L, mr_tensor_view(tensor, 0, &tensor->shape, slot));
  return 1;
}

/* --- changing in place --- */

static int return_self(lua_State *L) {
  lua_settop(L, 1);
  return 1;
}

static int change_fill(lua_State *L) {
  fill_with(L, check_readable(L, 1), 2);
  return return_self(L);
}

static int change_element(lua_State *L) {
  double aligned = 0;
  mr_tensor *tensor = check_readable(L, 1);
  int64_t i = check_position(L, tensor, 2);
  write_number(L, 3, tensor->dtype, &aligned, 0);
  MR_LUA_TRY(L, mr_tensor_write(push_element_view(L, tensor, i), &aligned));
  return return_self(L);
}

static int change_copy(lua_State *L) {
  mr_tensor *to = check_readable(L, 1), *from = check_readable(L, 2);
  MR_LUA_TRY(L, mr_tensor_copy_from(to, from));
  return return_self(L);
}

static int change_add_scaled(lua_State *L) {
  mr_tensor *to = check_readable(L, 1), *from = check_readable(L, 3);
  double alpha = luaL_checknumber(L, 2);
  if (to->dtype != from->dtype || to->count != from->count)
    return mr_lua_error(L, MR_ERROR_ARGUMENT, "add_scaled_: %lld elements of %s onto %lld of %s",
                        (long long)from->count, mr_dtype_name(from->dtype), (long long)to->count,
                        mr_dtype_name(to->dtype));
  mr_tensor_changed(to);
  MR_LUA_TRY(L, MR_KERNEL(mr_tensor_device(to), to->dtype, add_scaled, to->count, alpha,
                          mr_tensor_data(from), mr_tensor_data(to)));
  return return_self(L);
}

static int change_scale(lua_State *L) {
  mr_tensor *tensor = check_readable(L, 1);
  double alpha = luaL_checknumber(L, 2);
  mr_tensor_changed(tensor);
  MR_LUA_TRY(L, MR_KERNEL(mr_tensor_device(tensor), tensor->dtype, scale, tensor->count, alpha,
                          mr_tensor_data(tensor), mr_tensor_data(tensor)));
  return return_self(L);
}

static int change_requires_gradient(lua_State *L) {
  mr_tensor *tensor = check_readable(L, 1);
  int wanted = lua_isnone(L, 2) ? 1 : lua_toboolean(L, 2);
  if (tensor->origin)
    return mr_lua_error(L, MR_ERROR_ARGUMENT,
                        "requires_gradient_ is for leaves; this tensor is a result");
  if (wanted && !mr_dtype_is_real(tensor->dtype))
    return mr_lua_error(L, MR_ERROR_ARGUMENT, "%s has no gradients", mr_dtype_name(tensor->dtype));
  tensor->requires_gradient = wanted;
  return return_self(L);
}

static int change_keep(lua_State *L) {
  check_readable(L, 1)->keep = 1;
  return return_self(L);
}

static int run_backward(lua_State *L) {
  mr_tensor *root = check_readable(L, 1);
  mr_context *context = mr_lua_context(L);
  double began = mr_clock_seconds() - mr_comm_waited_seconds();
  MR_LUA_TRY(L, mr_tape_backward(&context->tape, root));
  context->backward_seconds += mr_clock_seconds() - mr_comm_waited_seconds() - began;
  return 0;
}

static int read_backward_seconds(lua_State *L) {
  lua_pushnumber(L, mr_lua_context(L)->backward_seconds);
  return 1;
}

static const luaL_Reg methods[] = {{"shape", read_shape},
                                   {"dtype", read_dtype},
                                   {"device", read_device},
                                   {"count", read_count},
                                   {"item", read_item},
                                   {"values", read_values},
                                   {"get", read_element},
                                   {"set_", change_element},
                                   {"total", read_total},
                                   {"deferred_total", make_total},
                                   {"hash", read_hash},
                                   {"gradient", read_gradient},
                                   {"is_same", read_is_same},
                                   {"requires_gradient", read_requires_gradient},
                                   {"to", make_converted},
                                   {"copy", make_copy},
                                   {"detach", make_detached},
                                   {"fill_", change_fill},
                                   {"copy_", change_copy},
                                   {"add_scaled_", change_add_scaled},
                                   {"scale_", change_scale},
                                   {"requires_gradient_", change_requires_gradient},
                                   {"keep", change_keep},
                                   {"backward", run_backward},
                                   {NULL, NULL}};

static const luaL_Reg metamethods[] = {
    {"__gc", collect}, {"__close", collect}, {"__tostring", to_text}, {NULL, NULL}};

static const luaL_Reg makers[] = {{"zeros", make_zeros},
                                  {"ones", make_ones},
                                  {"full", make_full},
                                  {"from", make_from},
                                  {NULL, NULL}};

void mr_lua_open_tensor(lua_State *L) {
  mr_lua_define_type(L, type_name, methods, metamethods);
  luaL_getmetatable(L, type_name);
  lua_rawsetp(L, LUA_REGISTRYINDEX, type_name);
  luaL_setfuncs(L, makers, 0);
  luaL_newlibtable(L, makers);
  lua_pushboolean(L, 1);
  luaL_setfuncs(L, makers, 1);
  lua_setfield(L, -2, "host");
  lua_pushcfunction(L, read_backward_seconds);
  lua_setfield(L, -2, "backward_seconds");
}
