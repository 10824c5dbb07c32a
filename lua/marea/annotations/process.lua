---@meta _

-- Child programs, and what this process runs on.

---@class marea.core.process
local core_process = {}

---@class marea.process_options
---@field arguments string[] the program, looked up in PATH, and its arguments
---@field input? string file for standard input; this process's own unless given
---@field output? string file for standard output
---@field errors? string file for standard error; may be the same as output
---@field set? table<string, string> further variables of the environment
---@field unset? string[] beginnings of the names of variables to leave out
---@field gentle? boolean the first SIGINT, SIGTERM or SIGHUP that is handed on becomes SIGUSR1, and
---  later ones SIGTERM (default false)

--- Starts a program without a shell. Errors: code 4 when it cannot be started.
---@param options marea.process_options
---@return marea.process process
function core_process.start(options) end

--- The path of this program.
---@return string? path nil where the system does not tell
function core_process.program() end

--- Number of cores that this process may use, as taskset and containers allow.
---@return integer cores
function core_process.cores() end

--- Whether a standard stream of this process is a terminal.
---@param descriptor integer 0 input, 1 output, 2 errors
---@return boolean is_terminal
function core_process.is_terminal(descriptor) end

--- How wide the terminal is that a standard stream goes to.
---@param descriptor integer 0 input, 1 output, 2 errors
---@return integer? columns 80 where the terminal does not say; nil for what is no terminal
function core_process.terminal_width(descriptor) end

--- The name of this machine.
---@return string name
function core_process.host() end

--- Whether this machine has a process of that id, whoever owns it.
---@param id integer
---@return boolean running
function core_process.is_running(id) end

--- From now on SIGINT, SIGTERM and SIGUSR1 are noted instead of ending the process; a second SIGINT
--- or SIGTERM ends it as usual.
function core_process.watch_stop() end

--- The signal that was noted since watch_stop.
---@return integer? signal nil when there was none
function core_process.stop_requested() end

--- A child program. Collected or closed before its end, it is killed. May be a <close> variable.
---@class marea.process: userdata
local process = {}

--- Waits for the end. At the limit the program gets SIGTERM, and SIGKILL five seconds later.
--- Requests to stop that reach this process meanwhile are handed on.
---@param seconds? number without limit unless given
---@return "exit"|"signal"|"limit" ending
---@return integer number exit code or signal; 0 at the limit
---@return integer? stopped the signal that asked this process to stop meanwhile
function process:wait(seconds) end

--- Whether the program has ended, without waiting.
---@return boolean ended
function process:ended() end

--- Sends a signal; nothing happens when the program has ended.
---@param number integer
function process:signal(number) end

--- The process id.
---@return integer id
function process:id() end
