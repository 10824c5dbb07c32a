-- Makes lua/marea/annotations/operations.lua and lua/REFERENCE.md anew, after a record of an
-- operation, or an annotation of what recipes use, has changed:
--     ./marea .ci/annotate.lua
require("marea.annotate").write()
