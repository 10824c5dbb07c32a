/* What the files of the binding that serve groups share. */
#ifndef MR_LUA_WORLD_H
#define MR_LUA_WORLD_H

#include <lauxlib.h>
#include <lua.h>

#include "comm/comm.h"

enum { MR_LUA_LINE = MR_LINE_BYTES };

/* Pushes a userdata for a group and returns its slot, to be filled with an owned reference. */
mr_group **mr_lua_push_group_shell(lua_State *L);

/* The group at `index`; raises when it is none. Borrowed. */
mr_group *mr_lua_check_group(lua_State *L, int index);

#endif
