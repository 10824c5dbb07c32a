---@meta _

-- Random numbers. Each depends on a seed, the number of a stream and its place therein, and never
-- on time, rank or thread. Seeds and numbers of streams are at least 0.

---@class marea.core
local core = {}

---@class marea.normal_options
---@field seed integer
---@field stream? integer (default 0)
---@field mean? number (default 0)
---@field std? number standard deviation, at least 0 (default 1)
---@field dtype? "f32"|"f64"|"bf16" (default "f32")

--- A tensor of draws of the normal distribution. In f64 they are those of f32, in bf16
--- those of f32, rounded.
--- Errors, code 1: no seed, options that cannot be.
---@param shape integer[]
---@param options marea.normal_options
---@return marea.tensor tensor
function core.normal(shape, options) end

---@class marea.uniform_options
---@field seed integer
---@field stream? integer (default 0)
---@field low? number (default 0)
---@field high? number not reached (default 1)
---@field dtype? "f32"|"f64"|"bf16" (default "f32")

--- A tensor of draws from low to high. In f64 they are those of f32, in bf16
--- those of f32, rounded.
--- Errors, code 1: no seed, options that cannot be.
---@param shape integer[]
---@param options marea.uniform_options
---@return marea.tensor tensor
function core.uniform(shape, options) end

--- Philox 4x32-10: the four random words of a key and a counter. Errors, code 1: words beyond 32
--- bits.
---@param key integer[] 2 words
---@param counter integer[] 4 words
---@return integer[] words 4 words
function core.philox(key, counter) end

--- A stream at its beginning.
---@param seed integer
---@param id integer number of the stream
---@return marea.stream stream
function core.stream(seed, id) end

--- Draws one after the other; how many words a draw takes is fixed, so a state is a number.
---@class marea.stream: userdata
local stream = {}

--- The next 32 random bits.
---@return integer word
function stream:next() end

--- A number of at least 0 and below 1.
---@return number value
function stream:uniform() end

--- An integer from 1 to n, each with the same probability. Errors, code 1: n below 1.
---@param n integer
---@return integer value
function stream:integer(n) end

--- A draw of the normal distribution with mean 0 and standard deviation 1.
---@return number value
function stream:normal() end

--- Where the stream stands.
---@return string state "philox SEED ID POSITION"
function stream:state() end

--- Goes on where a state was taken. Errors, code 3: a text that is no state; the stream stays.
---@param state string
---@return marea.stream self
function stream:restore(state) end
