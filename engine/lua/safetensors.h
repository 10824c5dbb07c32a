/* What the bindings of tensor files and corpora share. */
#ifndef MR_LUA_SAFETENSORS_H
#define MR_LUA_SAFETENSORS_H

#include <lua.h>

#include "store/safetensors.h"

/* Pushes the metadata as a table of strings by key. */
void mr_lua_push_metadata(lua_State *L, const mr_safetensors *file);

/* Pushes a new tensor with a copy of the file's tensor of that name. */
void mr_lua_push_stored(lua_State *L, const mr_safetensors *file, const char *name);

/* Pushes the names of all tensors, in file order. */
void mr_lua_push_names(lua_State *L, const mr_safetensors *file);

#endif
