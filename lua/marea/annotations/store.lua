---@meta _

-- Files of named tensors, and corpora of sequences.

---@class marea.core.safetensors
local safetensors = {}

--- A pair of name and tensor.
---@class marea.named_tensor
---@field [1] string
---@field [2] marea.tensor

--- Writes a file in the published safetensors format, as a whole or not at all. Equal arguments
--- give equal bytes.
--- Errors, code 1: the disk; a name given twice, texts that are no UTF-8.
---@param path string
---@param tensors marea.named_tensor[] in the order of the file
---@param metadata? table<string, string>
function safetensors.write(path, tensors, metadata) end

--- Opens a file after everything its header says was checked.
--- Errors: code 1 for a file that cannot be read, code 3 for one that is damaged or foreign.
---@param path string
---@return marea.safetensors file
function safetensors.open(path) end

--- An open, mapped tensor file; after close every question raises. May be a <close> variable.
---@class marea.safetensors: userdata
local file = {}

--- The names of all tensors, in the order of their elements in the file.
---@return string[] names
function file:names() end

--- Whether the file has a tensor of that name.
---@param name string
---@return boolean has
function file:has(name) end

--- The extents of a tensor. Errors, code 3: there is none of that name.
---@param name string
---@return integer[] shape
function file:shape(name) end

--- The dtype of a tensor: "f32" and the like, or as published ("F16") where marea has none.
--- Errors, code 3: there is none of that name.
---@param name string
---@return string dtype
function file:dtype(name) end

--- A tensor as a copy that outlives the file.
--- Errors, code 3: there is none of that name, or marea has no such dtype.
---@param name string
---@return marea.tensor tensor
function file:tensor(name) end

--- The metadata of the file.
---@return table<string, string> metadata
function file:metadata() end

--- The path by which the file was opened.
---@return string path
function file:path() end

--- Closes the file; again does nothing.
function file:close() end

---@class marea.core
local core = {}

--- Maps a corpus file, whose form is checked.
--- Errors: code 1 for a file that cannot be read, code 3 for one that is damaged or foreign.
---@param path string
---@return marea.corpus corpus
function core.corpus_open(path) end

--- The same over tensors in memory, which it keeps and which must not change afterwards.
--- Errors: code 1 for other dtypes or lengths, code 3 for offsets that fall.
---@param inputs marea.tensor i32 [rows] of all sequences end to end
---@param targets marea.tensor i32 [rows]; -100 does not count
---@param offsets marea.tensor i64 [sequences + 1] first row of each, from 0, and the end
---@param split marea.tensor i32 [sequences] 0 training, 1 validation, 2 test
---@return marea.corpus corpus
function core.corpus_over(inputs, targets, offsets, split) end

--- Sequences by id, from 1. An id that there is not raises with code 2. May be a <close> variable.
---@class marea.corpus: userdata
local corpus = {}

--- Number of sequences.
---@return integer size
function corpus:size() end

--- Number of inputs of a sequence.
---@param id integer
---@return integer length
function corpus:length(id) end

--- Number of supervised positions of a sequence: targets that are not -100.
---@param id integer
---@return integer tokens
function corpus:tokens(id) end

--- What a sequence is for.
---@param id integer
---@return integer split 0 training, 1 validation, 2 test
function corpus:split(id) end

--- The names of the file's tensors. Errors, code 1: a corpus without a file.
---@return string[] names
function corpus:names() end

--- A tensor of the file as a copy.
--- Errors: code 1 for a corpus without a file, code 3 where it has no such tensor.
---@param name string
---@return marea.tensor tensor
function corpus:tensor(name) end

--- The metadata of the file. Errors, code 1: a corpus without a file.
---@return table<string, string> metadata
function corpus:metadata() end

--- Refuses, with code 2, the first input outside 0 to vocabulary - 1 and the first target that is
--- neither in 0 to classes - 1 nor -100, naming sequence and position. Reads the whole corpus.
---@param vocabulary integer
---@param classes integer
function corpus:check_symbols(vocabulary, classes) end

--- The tensors of a microbatch.
---@class marea.gathered
---@field ids marea.tensor i32 [rows] inputs
---@field targets marea.tensor i32 [rows]; -100 does not count
---@field positions marea.tensor i32 [rows] from 0 in each sequence
---@field sequence_ids marea.tensor i64 [rows]
---@field lengths marea.tensor i64 [sequences] rows of each, without padding
---@field starts marea.tensor i64 [sequences] first row of each, from 0

--- Copies sequences, end to end, in the order given; none give tensors of zero rows.
---@param ids integer[]
---@return marea.gathered tensors
function corpus:gather(ids) end

--- Copies sequences into `length` rows each, filled up with the input `pad` and targets of -100.
--- Errors, code 1: a sequence that is longer.
---@param ids integer[]
---@param length integer rows of each sequence
---@param pad integer
---@return marea.gathered tensors
function corpus:gather_padded(ids, length, pad) end

--- Closes the corpus; again does nothing.
function corpus:close() end
