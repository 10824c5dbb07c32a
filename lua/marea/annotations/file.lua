---@meta _

-- Files and folders. A path is a string without NUL bytes, relative to the working folder.
-- Whatever fails raises with code 1 and says the path and the system's reason; only questions
-- answer.

---@class marea.core.file
local file = {}

--- The content of a file.
---@param path string
---@return string bytes
function file.read(path) end

--- Replaces the content of a file as a whole: whatever fails, the name holds the old content or the
--- new one. Returns once it is on the disk.
---@param path string
---@param bytes string
function file.write(path, bytes) end

--- Whether something of that name exists; links are followed.
---@param path string
---@return boolean exists
function file.exists(path) end

--- Whether a folder of that name exists; links are followed.
---@param path string
---@return boolean exists
function file.is_folder(path) end

--- Whether the name itself is a symbolic link, to whatever.
---@param path string
---@return boolean is_link
function file.is_link(path) end

--- The length of a regular file, links followed; nil for anything else and where nothing is.
---@param path string
---@return integer? bytes
function file.bytes(path) end

--- The names in a folder, sorted by their bytes, without "." and "..".
---@param path string
---@return string[] names
function file.list(path) end

--- Makes a folder with its parents; one that exists is no error.
---@param path string
function file.make_folder(path) end

--- Removes one file or link; one that is not there is an error.
---@param path string
function file.remove(path) end

--- Removes root/name with all that it holds. Links inside are removed and never followed; links on
--- the way, and names that are empty, absolute or have a component "." or "..", are refused.
---@param root string
---@param name string
function file.remove_folder(root, name) end

--- Renames a file or folder within one file system; a target that exists is an error.
---@param from string
---@param to string
function file.move(from, to) end

--- sha-256 of a text.
---@param bytes string
---@return string hash 64 hexadecimal digits
function file.sha256(bytes) end

--- sha-256 of a file's content, or of a part of it. A file that ends before the part is an error.
---@param path string
---@param first? integer byte at which the part begins, from 0
---@param bytes? integer of the part
---@return string hash 64 hexadecimal digits
function file.sha256_of(path, first, bytes) end

--- Opens a file of lines for adding more, and makes it where there is none. A last line without its
--- end, as a killed process leaves one, is cut off.
---@param path string
---@return marea.appender appender
function file.append(path) end

--- Begins a folder that appears complete or not at all, beside its final name.
---@param path string the final name; a folder that has it is replaced in one step at the end
---@return marea.staging staging
function file.begin_folder(path) end

--- Takes the lock of a folder, which need not exist yet, without waiting. The system frees the lock
--- of a process that dies.
--- Errors: code 4 when another process holds it, naming process and host.
---@param path string
---@return marea.lock lock
function file.lock(path) end

--- Who holds the lock of a folder. Takes none.
---@param path string
---@return string? holder "process PID on HOST"; nil when nobody does
function file.lock_holder(path) end

--- For specs: the n-th system call of the file layer from now on fails as on a full disk; 0 turns
--- this off.
---@param n integer
function file.fail_at(n) end

--- For specs: system calls of the file layer so far.
---@return integer calls
function file.calls() end

--- A file of lines. May be a <close> variable.
---@class marea.appender: userdata
local appender = {}

--- Adds a line and its end, whole or not at all.
--- Errors, code 1: a newline inside; after close.
---@param line string
function appender:write(line) end

--- Returns once all lines are on the disk.
function appender:sync() end

--- Closes the file; again does nothing.
function appender:close() end

--- A folder under construction. May be a <close> variable, which discards what was not committed.
---@class marea.staging: userdata
local staging = {}

--- The folder to write into, by any means.
---@return string path
function staging:path() end

--- Brings everything inside to the disk and gives the folder its final name. On failure the folder
--- is discarded and the old one stands, or the new one where the exchange was made. Once only.
function staging:commit() end

--- Removes what was written; after commit nothing happens.
function staging:discard() end

--- A lock that is held. May be a <close> variable.
---@class marea.lock: userdata
local lock = {}

--- Gives the lock back; again does nothing.
function lock:close() end
