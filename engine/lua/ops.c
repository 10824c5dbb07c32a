/* Operations as methods of tensors, made from their records; and core.operations, which lists
 * the records for the reference and the specs. */
#include "grad/ops.h"

#include <string.h>

#include "lua/binding.h"

/* Of what is written as an address, the type is told. */
static void bad_argument(lua_State *L, const mr_op *op, int i, const char *expected, int index) {
  int type = lua_type(L, index);
  const char *found = type == LUA_TTABLE || type == LUA_TFUNCTION || type == LUA_TTHREAD
                          ? lua_pushfstring(L, "a %s", lua_typename(L, type))
                          : luaL_tolstring(L, index, NULL);
  (void)mr_lua_error(L, MR_ERROR_ARGUMENT, "%s: %s must be %s, got %s", op->name,
                     op->argument[i].name, expected, found);
}

static void note_real(lua_State *L, mr_call *call, int i, mr_tensor *tensor, int *seen) {
  const mr_argument *argument = &call->op->argument[i];
  if (!mr_dtype_is_real(tensor->dtype))
    (void)mr_lua_error(L, MR_ERROR_ARGUMENT, "%s: %s must be f32, f64 or bf16, got %s",
                       call->op->name, argument->name, mr_dtype_name(tensor->dtype));
  if (!*seen) call->dtype = tensor->dtype;
  *seen = 1;
  int constant = argument->kind == MR_ARGUMENT_CONSTANT;
  mr_dtype wanted = constant ? mr_dtype_wide(call->dtype) : call->dtype;
  if (tensor->dtype == wanted) return;
  if (wanted != call->dtype)
    (void)mr_lua_error(L, MR_ERROR_ARGUMENT, "%s: %s of %s must be %s, got %s", call->op->name,
                       argument->name, mr_dtype_name(call->dtype), mr_dtype_name(wanted),
                       mr_dtype_name(tensor->dtype));
  (void)mr_lua_error(L, MR_ERROR_ARGUMENT, "%s: %s is %s while the arguments before it are %s",
                     call->op->name, argument->name, mr_dtype_name(tensor->dtype),
                     mr_dtype_name(call->dtype));
}

static void read_tensor(lua_State *L, mr_call *call, int i, int index, int *seen) {
  static const char *const expected[] = {"a tensor", "a tensor", "an i32 tensor", "an i64 tensor"};
  const mr_argument *argument = &call->op->argument[i];
  mr_tensor *tensor = mr_lua_test_tensor(L, index);
  if (!tensor) bad_argument(L, call->op, i, expected[argument->kind], index);
  if (argument->kind == MR_ARGUMENT_I32 || argument->kind == MR_ARGUMENT_I64) {
    mr_dtype wanted = argument->kind == MR_ARGUMENT_I32 ? MR_I32 : MR_I64;
    if (tensor->dtype != wanted) bad_argument(L, call->op, i, expected[argument->kind], index);
  } else {
    note_real(L, call, i, tensor, seen);
  }
  call->tensor[i] = tensor;
}

/* The array lives in a userdata at `index` + nothing: it is left on the stack until the call ends.
 */
static void read_list(lua_State *L, mr_call *call, int i, int index, int *seen) {
  if (!lua_istable(L, index)) bad_argument(L, call->op, i, "a list of tensors", index);
  call->more_count = luaL_len(L, index);
  mr_tensor **list = lua_newuserdatauv(L, sizeof(mr_tensor *) * (size_t)(call->more_count + 1), 0);
  for (int64_t j = 0; j < call->more_count; j++) {
    lua_geti(L, index, j + 1);
    list[j] = mr_lua_test_tensor(L, -1);
    if (!list[j]) bad_argument(L, call->op, i, "a list of tensors", -1);
    note_real(L, call, i, list[j], seen);
    lua_pop(L, 1); /* the table keeps it */
  }
  call->more = list;
}

static void read_integer(lua_State *L, mr_call *call, int i, int index) {
  int good = 0;
  call->integer[i] = lua_tointegerx(L, index, &good);
  if (!good || lua_type(L, index) == LUA_TSTRING) bad_argument(L, call->op, i, "an integer", index);
}

static void read_number(lua_State *L, mr_call *call, int i, int index) {
  if (lua_type(L, index) != LUA_TNUMBER) bad_argument(L, call->op, i, "a number", index);
  call->number[i] = lua_tonumber(L, index);
}

static void read_present(lua_State *L, mr_call *call, int i, int index, int *seen) {
  switch (call->op->argument[i].kind) {
    case MR_ARGUMENT_REAL:
    case MR_ARGUMENT_CONSTANT:
    case MR_ARGUMENT_I32:
    case MR_ARGUMENT_I64:
      read_tensor(L, call, i, index, seen);
      break;
    case MR_ARGUMENT_TENSORS:
      read_list(L, call, i, index, seen);
      break;
    case MR_ARGUMENT_NUMBER:
      read_number(L, call, i, index);
      break;
    case MR_ARGUMENT_INTEGER:
      read_integer(L, call, i, index);
      break;
    case MR_ARGUMENT_FLAG:
      if (!lua_isboolean(L, index)) bad_argument(L, call->op, i, "true or false", index);
      call->integer[i] = lua_toboolean(L, index);
      break;
    case MR_ARGUMENT_SHAPE:
      call->extents = mr_lua_check_shape(L, index);
      break;
  }
}

static void read_argument(lua_State *L, mr_call *call, int i, int index, int *seen) {
  const mr_argument *argument = &call->op->argument[i];
  if (!lua_isnoneornil(L, index)) {
    read_present(L, call, i, index, seen);
    return;
  }
  if (!argument->optional)
    (void)mr_lua_error(L, MR_ERROR_ARGUMENT, "%s: %s is missing", call->op->name, argument->name);
  call->number[i] = argument->fallback;
  call->integer[i] = (int64_t)argument->fallback;
}

static void check_options(lua_State *L, const mr_op *op, int index) {
  const char *names[MR_OP_MAX_ARGUMENTS + 1];
  int count = 0;
  for (int i = 0; i < op->arguments; i++)
    if (op->argument[i].named) names[count++] = op->argument[i].name;
  names[count] = NULL;
  if (count)
    mr_lua_check_keys(L, index, op->name, names);
  else if (!lua_isnone(L, index))
    (void)mr_lua_error(L, MR_ERROR_ARGUMENT, "%s takes %d arguments, got %d", op->name, index - 1,
                       lua_gettop(L));
}

static int positional_count(const mr_op *op) {
  int count = 0;
  for (int i = 0; i < op->arguments; i++) count += !op->argument[i].named;
  return count;
}

/* The second value of a call that is a pair; pushed before the call, so that nothing can fail in
 * between. */
static int apply_pair(lua_State *L, mr_context *context, mr_call *call) {
  mr_tensor **slot = mr_lua_push_tensor_shell(L), **first = mr_lua_push_tensor_shell(L);
  MR_LUA_TRY(L, mr_tape_apply_pair(&context->tape, call, first));
  *slot = call->output;
  mr_lua_result_made(L, context, call->output);
  return 2;
}

static int apply(lua_State *L) {
  const mr_op *op = lua_touserdata(L, lua_upvalueindex(1));
  mr_context *context = lua_touserdata(L, lua_upvalueindex(2));
  mr_call call = {.op = op};
  int options = positional_count(op) + 1, position = 0, seen = 0;
  check_options(L, op, options);
  lua_settop(L, options);
  for (int i = 0; i < op->arguments; i++) {
    if (!op->argument[i].named) {
      read_argument(L, &call, i, ++position, &seen);
      continue;
    }
    if (lua_isnil(L, options))
      lua_pushnil(L);
    else
      lua_getfield(L, options, op->argument[i].name);
    read_argument(L, &call, i, lua_gettop(L), &seen); /* left on the stack: it may be the only
                                                         reference */
  }
  if (op->pair) return apply_pair(L, context, &call);
  mr_tensor **slot = mr_lua_push_tensor_shell(L);
  MR_LUA_TRY(L, mr_tape_apply(&context->tape, &call));
  *slot = call.output;
  mr_lua_result_made(L, context, call.output);
  return 1;
}

static const char *kind_name(mr_argument_kind kind) {
  static const char *const names[] = {"real",   "constant", "i32",  "i64",  "tensors",
                                      "number", "integer",  "flag", "shape"};
  return names[kind];
}

static void push_argument(lua_State *L, const mr_argument *argument) {
  lua_newtable(L);
  lua_pushstring(L, argument->name);
  lua_setfield(L, -2, "name");
  lua_pushstring(L, kind_name(argument->kind));
  lua_setfield(L, -2, "kind");
  lua_pushboolean(L, argument->optional);
  lua_setfield(L, -2, "optional");
  lua_pushboolean(L, argument->named);
  lua_setfield(L, -2, "named");
  lua_pushnumber(L, argument->fallback);
  lua_setfield(L, -2, "fallback");
  lua_pushstring(L, argument->text);
  lua_setfield(L, -2, "text");
}

static void push_record(lua_State *L, const mr_op *op) {
  lua_newtable(L);
  lua_pushstring(L, op->name);
  lua_setfield(L, -2, "name");
  lua_pushstring(L, op->text);
  lua_setfield(L, -2, "text");
  lua_pushstring(L, op->result_text);
  lua_setfield(L, -2, "result_text");
  if (op->pair) {
    lua_pushstring(L, op->pair->first_text);
    lua_setfield(L, -2, "second_text");
  }
  lua_pushboolean(L, op->backward || op->pair);
  lua_setfield(L, -2, "differentiable");
  lua_newtable(L);
  for (int i = 0; i < op->arguments; i++) {
    push_argument(L, &op->argument[i]);
    lua_seti(L, -2, i + 1);
  }
  lua_setfield(L, -2, "arguments");
}

/* no_grad: a scope in which nothing is recorded. */
static int leave_no_grad(lua_State *L) {
  int *entered = luaL_checkudata(L, 1, "marea.no_grad");
  if (*entered) mr_lua_context(L)->tape.paused--;
  *entered = 0;
  return 0;
}

static int enter_no_grad(lua_State *L) {
  int *entered = lua_newuserdatauv(L, sizeof(int), 0);
  *entered = 1;
  mr_lua_context(L)->tape.paused++;
  luaL_setmetatable(L, "marea.no_grad");
  return 1;
}

static const luaL_Reg no_methods[] = {{NULL, NULL}};
static const luaL_Reg scope[] = {{"__gc", leave_no_grad}, {"__close", leave_no_grad}, {NULL, NULL}};

void mr_lua_open_ops(lua_State *L) {
  luaL_getmetatable(L, "marea.tensor");
  lua_getfield(L, -1, "__index");
  lua_newtable(L);
  for (int i = 0; mr_ops()[i]; i++) {
    const mr_op *op = mr_ops()[i];
    lua_pushlightuserdata(L, (void *)(uintptr_t)op);
    lua_pushlightuserdata(L, mr_lua_context(L));
    lua_pushcclosure(L, apply, 2);
    lua_setfield(L, -3, op->name);
    push_record(L, op);
    lua_seti(L, -2, i + 1);
  }
  lua_setfield(L, -4, "operations");
  lua_pop(L, 2);
  mr_lua_define_type(L, "marea.no_grad", no_methods, scope);
  lua_pushcfunction(L, enter_no_grad);
  lua_setfield(L, -2, "no_grad");
}
