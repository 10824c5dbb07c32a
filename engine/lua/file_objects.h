/* The objects of core.file: appender, staging folder, lock. */
#ifndef MR_LUA_FILE_OBJECTS_H
#define MR_LUA_FILE_OBJECTS_H

#include <lua.h>

/* Adds append, begin_folder and lock to the table at the top of the stack. */
void mr_lua_open_file_objects(lua_State *L);

#endif
