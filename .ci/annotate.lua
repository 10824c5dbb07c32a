-- Makes lua/marea/annotations/operations.lua anew, after a record of an operation has changed:
--     ./marea .ci/annotate.lua
require("marea.annotate").write()
