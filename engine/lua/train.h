/* Userdata of the train floor that several files of the binding use. */
#ifndef MR_LUA_TRAIN_H
#define MR_LUA_TRAIN_H

#include <lua.h>

#include "train/unit.h"

/* The unit at `index`; raises when it is none. Borrowed. */
mr_unit *mr_lua_check_unit(lua_State *L, int index);

#endif
