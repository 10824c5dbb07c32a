/* What every file of the binding uses: faults, the recipe's line, the context, checked arguments.
 *
 * This floor is the only one that knows Lua. A function checks all its arguments first, makes the
 * userdata that will own the result (shell), runs the engine, and raises last. */
#ifndef MR_LUA_BINDING_H
#define MR_LUA_BINDING_H

#include <lauxlib.h>
#include <lua.h>
#include <stdint.h>

#include "base/status.h"
#include "device/device.h"
#include "grad/tape.h"
#include "tensor/tensor.h"

/* What one Lua state owns of the engine; made at the first luaopen and found again by later ones.
 */
typedef struct mr_context {
  mr_device *device; /* where new tensors lie: one of the next two */
  mr_device *host;   /* the CPU */
  mr_device *gpu;    /* NULL until it was asked for */
  mr_tape tape;
  int freed_little;        /* the last run of the collector for tensors */
  int64_t lowest_bytes;    /* of live memory, since the collector was last run for tensors */
  int64_t untold_bytes;    /* of small tensors, that the collector is still to be told of */
  double backward_seconds; /* spent in backward, waits for other ranks left out */
} mr_context;

mr_context *mr_lua_context(lua_State *L);

/* Tells the static analyzer that a function raises and does not come back; its int only lets
 * callers write `return mr_lua_error(...)`. */
#ifdef __clang_analyzer__
#define MR_LUA_RAISES __attribute__((analyzer_noreturn))
#else
#define MR_LUA_RAISES
#endif

/* Raises the recorded message as a fault: a table {message, code} with the metatable
 * "marea.fault", whose message begins with the first line outside lua/marea. */
int mr_lua_raise(lua_State *L, mr_status status) MR_LUA_RAISES;
/* Records a message and raises it. */
int mr_lua_error(lua_State *L, mr_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4))) MR_LUA_RAISES;

#define MR_LUA_TRY(L, expression)                                 \
  do {                                                            \
    mr_status mr_lua_try_ = (expression);                         \
    if (mr_lua_try_ != MR_OK) (void)mr_lua_raise(L, mr_lua_try_); \
  } while (0)

/* Writes "file:line" of the first stack level outside the library (lua/marea) into text; "" when
 * there is none. */
void mr_lua_line(lua_State *L, char *text, size_t bytes);

/* Tells the binding which chunk names belong to the library: "@<folder>/". */
void mr_lua_set_library(lua_State *L, const char *prefix);

/* Makes a metatable of that name with `methods` as __index (and `metamethods`), once per state. */
void mr_lua_define_type(lua_State *L, const char *name, const luaL_Reg *methods,
                        const luaL_Reg *metamethods);

/* Pushes an empty tensor userdata and returns its slot, to be filled by the engine. */
mr_tensor **mr_lua_push_tensor_shell(lua_State *L);
/* Lets the collector take a tensor into account that the shell at the top of the stack has
 * received. */
void mr_lua_tensor_made(lua_State *L);
/* The same for `tensor`, wherever its shell is. */
void mr_lua_result_made(lua_State *L, mr_context *context, const mr_tensor *tensor);
/* The tensor at `index`; raises when it is none. Borrowed. */
mr_tensor *mr_lua_check_tensor(lua_State *L, int index);
/* The same, or NULL when the value is no tensor. */
mr_tensor *mr_lua_test_tensor(lua_State *L, int index);

/* The dtype named at `index`, or `fallback` when absent (-1: required). */
mr_dtype mr_lua_check_dtype(lua_State *L, int index, int fallback);
/* A table of extents at `index`. */
mr_shape mr_lua_check_shape(lua_State *L, int index);
void mr_lua_push_shape(lua_State *L, const mr_shape *shape);

/* Options tables: refuses keys that are not among `names` (NULL-terminated); nil counts as an
 * empty table. `what` names the function in the message. */
void mr_lua_check_keys(lua_State *L, int index, const char *what, const char *const *names);
double mr_lua_option_number(lua_State *L, int index, const char *name, double fallback);
int64_t mr_lua_option_integer(lua_State *L, int index, const char *name, int64_t fallback);
int mr_lua_option_flag(lua_State *L, int index, const char *name, int fallback);
/* Borrowed; valid while the table holds it. */
const char *mr_lua_option_string(lua_State *L, int index, const char *name, const char *fallback);

/* The parts of marea.core; each adds its functions to the table at the top of the stack and may
 * run more than once in a state. */
void mr_lua_open_fault(lua_State *L);
void mr_lua_open_tensor(lua_State *L);
void mr_lua_open_ops(lua_State *L);
void mr_lua_open_random(lua_State *L);
void mr_lua_open_memory(lua_State *L);
void mr_lua_open_device(lua_State *L);
void mr_lua_open_world(lua_State *L);
void mr_lua_open_collectives(lua_State *L); /* after open_world, whose type it adds to */
void mr_lua_open_file(lua_State *L);
void mr_lua_open_safetensors(lua_State *L);
void mr_lua_open_corpus(lua_State *L);
void mr_lua_open_unit(lua_State *L);
void mr_lua_open_reducer(lua_State *L);
void mr_lua_open_optimizer(lua_State *L);
void mr_lua_open_compare(lua_State *L);
void mr_lua_open_process(lua_State *L);
void mr_lua_open_bench(lua_State *L);

/* The module marea.core. */
int luaopen_marea_core(lua_State *L);

#endif
