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
dependencies = { "lua ~> 5.4", "dkjson >= 2.5", "argparse >= 0.7" }
external_dependencies = {
  MPI = { header = "mpi.h" },
  OPENSSL = { header = "openssl/evp.h" },
  JANSSON = { header = "jansson.h" },
}
test_dependencies = { "busted >= 2.1" }
build = {
  type = "command",
  build_command = "cmake -S . -B build -G Ninja -DCMAKE_BUILD_TYPE=Release && ninja -C build",
  install_command = "mkdir -p $(LUADIR) $(LIBDIR)/marea && cp -R lua/marea $(LUADIR)/ && " ..
    "cp build/lib/marea/core.so $(LIBDIR)/marea/",
}
test = { type = "command", command = "./marea test" }
