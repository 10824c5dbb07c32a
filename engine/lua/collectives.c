/* The operations of the userdata `group`, and the userdata `handle` of those under way.
 *
 * Every operation is posted into a handle's shell. The handle holds views of its tensors, so that
 * their memory stays until the operation is done, and as user value what the operation returns:
 * the tensor itself for those in place, a new one for the others. */
#include <string.h>

#include "lua/binding.h"
#include "lua/world.h"

static const char type_name[] = "marea.handle";

typedef struct box {
  mr_handle *handle;        /* NULL before the post and after the end */
  mr_tensor *data, *result; /* views, held until the end; `result` may be NULL */
} box;

/* ---- handles ---- */

static void let_go(box *held) {
  mr_handle *handle = held->handle;
  held->handle = NULL;
  mr_handle_release(handle);
  if (held->result) mr_tensor_changed(held->result);
  mr_tensor_release(held->data);
  mr_tensor_release(held->result);
  held->data = NULL;
  held->result = NULL;
}

static int collect(lua_State *L) {
  let_go(luaL_checkudata(L, 1, type_name));
  return 0;
}

/* Waits, and pushes what the operation returns. */
static int finish(lua_State *L, int index) {
  box *held = luaL_checkudata(L, index, type_name);
  if (held->handle) {
    mr_status status = mr_handle_wait(held->handle);
    if (status != MR_OK) return mr_lua_raise(L, status);
    let_go(held);
  }
  lua_getiuservalue(L, index, 1);
  return 1;
}

static int wait(lua_State *L) { return finish(L, 1); }

static int read_done(lua_State *L) {
  const box *held = luaL_checkudata(L, 1, type_name);
  lua_pushboolean(L, !held->handle || mr_handle_test(held->handle));
  return 1;
}

static int to_text(lua_State *L) {
  const box *held = luaL_checkudata(L, 1, type_name);
  lua_pushfstring(L, "handle<%s>", held->handle ? "pending" : "done");
  return 1;
}

/* ---- arguments ---- */

static mr_tensor *check_data(lua_State *L) {
  mr_tensor *tensor = mr_lua_check_tensor(L, 2);
  MR_LUA_TRY(L, mr_tensor_readable(tensor, "the tensor"));
  return tensor;
}

static mr_reduction check_reduction(lua_State *L, int index) {
  const char *name = luaL_checkstring(L, index);
  int reduction = mr_reduction_find(name);
  if (reduction < 0)
    (void)mr_lua_error(L, MR_ERROR_ARGUMENT,
                       "there is no reduction '%s'; there are sum, mean, max and min", name);
  return (mr_reduction)reduction;
}

static int check_number(lua_State *L, int index, int fallback, const char *what) {
  lua_Integer value =
      fallback < 0 ? luaL_checkinteger(L, index) : luaL_optinteger(L, index, fallback);
  if (value < 0 || value > INT32_MAX)
    (void)mr_lua_error(L, MR_ERROR_ARGUMENT, "%s must be 0 to %d, got %lld", what, INT32_MAX,
                       (long long)value);
  return (int)value;
}

/* Elements of one of the `ranks` equal blocks into which the first axis is cut. */
static int64_t check_blocks(lua_State *L, const mr_tensor *tensor, int ranks, const char *what) {
  int64_t extent = tensor->shape.axes > 0 ? tensor->shape.extent[0] : 1;
  if (extent % ranks != 0)
    (void)mr_lua_error(L, MR_ERROR_ARGUMENT,
                       "%s: a first axis of %lld cannot be cut into %d equal blocks", what,
                       (long long)extent, ranks);
  return tensor->count / ranks;
}

/* Holds a view of `tensor` in *slot. */
static void hold(lua_State *L, mr_tensor *tensor, mr_tensor **slot) {
  MR_LUA_TRY(L, mr_tensor_view(tensor, 0, &tensor->shape, slot));
}

/* An operation in place returns the tensor that it was given, at 2. */
static void hold_in_place(lua_State *L, box *held, mr_tensor *tensor, int changes) {
  hold(L, tensor, &held->data);
  if (changes) {
    hold(L, tensor, &held->result);
    mr_tensor_changed(tensor);
  }
  lua_pushvalue(L, 2);
  lua_setiuservalue(L, -2, 1);
}

/* Makes the result of the others. The shell is at the top. */
static void *make_result(lua_State *L, box *held, mr_tensor *data, const mr_shape *shape) {
  hold(L, data, &held->data);
  mr_tensor **slot = mr_lua_push_tensor_shell(L);
  MR_LUA_TRY(L, mr_tensor_new_raw(mr_tensor_device(data), data->dtype, shape, slot));
  mr_lua_tensor_made(L);
  hold(L, *slot, &held->result);
  lua_setiuservalue(L, -2, 1);
  return mr_tensor_data(held->result);
}

/* The shape with a first axis `times` as long, a scalar counting as one row. */
static mr_shape longer(const mr_tensor *tensor, int64_t times) {
  mr_shape shape = tensor->shape;
  if (shape.axes == 0) shape = (mr_shape){1, {1}};
  shape.extent[0] *= times;
  return shape;
}

/* ---- posts: arguments at 1 and up, the shell at the top ---- */

typedef mr_status (*post_function)(lua_State *L, box *held, const char *line);

static mr_status post_all_reduce(lua_State *L, box *held, const char *line) {
  mr_group *group = mr_lua_check_group(L, 1);
  mr_tensor *data = check_data(L);
  mr_reduction reduction = check_reduction(L, 3);
  hold_in_place(L, held, data, 1);
  return mr_group_all_reduce_async(group, mr_tensor_device(data), mr_tensor_data(data), data->count,
                                   data->dtype, reduction, line, &held->handle);
}

static mr_status post_broadcast(lua_State *L, box *held, const char *line) {
  mr_group *group = mr_lua_check_group(L, 1);
  mr_tensor *data = check_data(L);
  int root = check_number(L, 3, -1, "the root");
  hold_in_place(L, held, data, 1);
  return mr_group_broadcast_async(group, mr_tensor_device(data), mr_tensor_data(data), data->count,
                                  data->dtype, root, line, &held->handle);
}

static mr_status post_all_gather(lua_State *L, box *held, const char *line) {
  mr_group *group = mr_lua_check_group(L, 1);
  mr_tensor *data = check_data(L);
  mr_shape shape = longer(data, mr_group_size(group));
  void *result = make_result(L, held, data, &shape);
  return mr_group_all_gather_async(group, mr_tensor_device(data), mr_tensor_data(data), result,
                                   data->count, data->dtype, line, &held->handle);
}

static mr_status post_reduce_scatter(lua_State *L, box *held, const char *line) {
  mr_group *group = mr_lua_check_group(L, 1);
  mr_tensor *data = check_data(L);
  mr_reduction reduction = check_reduction(L, 3);
  int64_t count = check_blocks(L, data, mr_group_size(group), "reduce_scatter");
  mr_shape shape = longer(data, 1);
  shape.extent[0] /= mr_group_size(group);
  void *result = make_result(L, held, data, &shape);
  return mr_group_reduce_scatter_async(group, mr_tensor_device(data), mr_tensor_data(data), result,
                                       count, data->dtype, reduction, line, &held->handle);
}

static mr_status post_all_to_all(lua_State *L, box *held, const char *line) {
  mr_group *group = mr_lua_check_group(L, 1);
  mr_tensor *data = check_data(L);
  int64_t count = check_blocks(L, data, mr_group_size(group), "all_to_all");
  void *result = make_result(L, held, data, &data->shape);
  return mr_group_all_to_all_async(group, mr_tensor_device(data), mr_tensor_data(data), result,
                                   count, data->dtype, line, &held->handle);
}

static mr_status post_send(lua_State *L, box *held, const char *line) {
  mr_group *group = mr_lua_check_group(L, 1);
  mr_tensor *data = check_data(L);
  int to = check_number(L, 3, -1, "the rank"), tag = check_number(L, 4, 0, "the tag");
  hold_in_place(L, held, data, 0);
  return mr_group_send_async(group, mr_tensor_device(data), mr_tensor_data(data), data->count,
                             data->dtype, to, tag, line, &held->handle);
}

static mr_status post_receive(lua_State *L, box *held, const char *line) {
  mr_group *group = mr_lua_check_group(L, 1);
  mr_tensor *data = check_data(L);
  int from = check_number(L, 3, -1, "the rank"), tag = check_number(L, 4, 0, "the tag");
  hold_in_place(L, held, data, 1);
  return mr_group_receive_async(group, mr_tensor_device(data), mr_tensor_data(data), data->count,
                                data->dtype, from, tag, line, &held->handle);
}

static mr_status post_barrier(lua_State *L, box *held, const char *line) {
  return mr_group_barrier_async(mr_lua_check_group(L, 1), line, &held->handle);
}

/* ---- the two forms of each ---- */

enum { ARGUMENTS = 4, SHELL = ARGUMENTS + 1 };

static void start(lua_State *L, post_function post) {
  char line[MR_LUA_LINE];
  lua_settop(L, ARGUMENTS);
  mr_lua_line(L, line, sizeof line);
  box *shell = lua_newuserdatauv(L, sizeof(box), 1);
  memset(shell, 0, sizeof *shell);
  luaL_setmetatable(L, type_name);
  MR_LUA_TRY(L, post(L, shell, line));
}

#define DEFINE_FORMS(name)                \
  static int name(lua_State *L) {         \
    start(L, post_##name);                \
    return finish(L, SHELL);              \
  }                                       \
  static int name##_async(lua_State *L) { \
    start(L, post_##name);                \
    return 1;                             \
  }

DEFINE_FORMS(all_reduce)
DEFINE_FORMS(broadcast)
DEFINE_FORMS(all_gather)
DEFINE_FORMS(reduce_scatter)
DEFINE_FORMS(all_to_all)
DEFINE_FORMS(send)
DEFINE_FORMS(receive)
DEFINE_FORMS(barrier)

/* Adds the methods of this file to the type that world.c defines. */
static void add_to_groups(lua_State *L) {
  static const luaL_Reg methods[] = {{"all_reduce", all_reduce},
                                     {"all_reduce_async", all_reduce_async},
                                     {"broadcast", broadcast},
                                     {"broadcast_async", broadcast_async},
                                     {"all_gather", all_gather},
                                     {"all_gather_async", all_gather_async},
                                     {"reduce_scatter", reduce_scatter},
                                     {"reduce_scatter_async", reduce_scatter_async},
                                     {"all_to_all", all_to_all},
                                     {"all_to_all_async", all_to_all_async},
                                     {"send", send},
                                     {"send_async", send_async},
                                     {"receive", receive},
                                     {"receive_async", receive_async},
                                     {"barrier", barrier},
                                     {"barrier_async", barrier_async},
                                     {NULL, NULL}};
  luaL_getmetatable(L, "marea.group");
  lua_getfield(L, -1, "__index");
  luaL_setfuncs(L, methods, 0);
  lua_pop(L, 2);
}

void mr_lua_open_collectives(lua_State *L) {
  static const luaL_Reg methods[] = {{"wait", wait}, {"done", read_done}, {NULL, NULL}};
  static const luaL_Reg metamethods[] = {
      {"__gc", collect}, {"__close", collect}, {"__tostring", to_text}, {NULL, NULL}};
  mr_lua_define_type(L, type_name, methods, metamethods);
  add_to_groups(L);
}
