rockspec_format = "3.0"
package = "marea"
version = "0.1.0-1"
source = { url = "git+file://." }
description = {
  summary = "Distributed training, scripted in Lua, that proves the objective it computed",
  detailed = [[
A training engine in C for recipes in Lua 5.4: what is averaged over what is said in the recipe, and
`marea parity` proves that the gradient of several ranks is the gradient of the declared objective.]],
  license = "MIT",
  labels = { "machine-learning", "mpi", "numeric" },
}
supported_platforms = { "linux", "macosx" }
dependencies = { "lua ~> 5.4", "dkjson >= 2.5" }
test_dependencies = { "busted >= 2.1", "argparse >= 0.7" }
-- What else is needed, CMake finds: MPI, OpenBLAS, libcrypto, jansson and OpenMP. The program marea
-- is none of the rock's: `cmake --install` installs it with its recipes.
build = {
  type = "cmake",
  variables = {
    CMAKE_BUILD_TYPE = "Release",
    CMAKE_INSTALL_PREFIX = "$(PREFIX)",
    MAREA_LUADIR = "$(LUADIR)",
    MAREA_LIBDIR = "$(LIBDIR)",
    MAREA_MODULE_ONLY = "ON",
  },
}
test = { type = "command", command = "./marea test" }
