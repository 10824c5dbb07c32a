---@meta _

-- What the modules of the Lua library hand each other: recipes, sequences, batches, plans, locks.
-- A class with methods stands where it is written (marea.Window in window.lua).

--- plan[step][rank + 1][microbatch] is a list of sequence ids; a rank may have no microbatch.
---@alias marea.Plan integer[][][][]

--- One value for each row of a batch, or one table with a tensor for each named term.
---@alias marea.Weights marea.tensor|table<string, marea.tensor>

--- A row of a corpus, with the fields that its source gave.
---@class marea.Sequence
---@field id integer from 1 over the whole corpus
---@field split "train"|"validation"|"test"
---@field tokens integer supervised positions
---@field length integer inputs
---@field [string] any

--- A sequence as a window sees it.
---@class marea.PlacedSequence: marea.Sequence
---@field rank integer from 0
---@field microbatch integer from 1
---@field masked? integer supervised positions hidden beyond what the corpus ignores

--- The sequences of one microbatch. Without `update` nothing is being trained: there is no dropout.
---@class marea.Batch: marea.gathered
---@field sequences marea.Sequence[] in their order
---@field supervised integer[][] for each sequence its rows with a target, from 1
---@field rows integer of all sequences together, with padding
---@field tokens integer supervised positions
---@field seed? integer of the run
---@field update? integer that the batch is trained for

--- A sequence as a source gives it.
---@class marea.RawSequence
---@field inputs integer[] ids from 0
---@field targets integer[] ids from 0; -100 does not count
---@field split "train"|"validation"|"test"
---@field fields? table<string, string|number|boolean>

--- What a corpus is made of.
---@class marea.Source
---@field sequences marea.RawSequence[]
---@field vocabulary integer number of symbols
---@field begin? integer the symbol that begins a sequence
---@field pad? integer the symbol that pads
---@field notes? table for the corpus card

--- The weight of each supervised position of a sequence: one number for all, or one for each.
---@alias marea.Weighting fun(sequence: marea.PlacedSequence, window: marea.Window): number|number[]

--- One part of an objective. Units given by name have one value each instead of one per position.
---@class marea.Term
---@field name string
---@field unit marea.Weighting|"position"|"sequence"|"microbatch"|"window"
---@field coefficient number

--- The config of a recipe: the keys that every recipe knows, and the recipe's own. Read-only; a key
--- that nobody declared raises with code 2.
---@class marea.Config
---@field seed integer of initial values, dropout and the sampler's draws
---@field ranks integer that the plan is made for; the world's unless given
---@field updates integer
---@field stop? integer update at which train saves and ends; a resume goes on
---@field accumulation integer microbatches of a rank and window
---@field batch_size_per_rank integer sequences of a microbatch
---@field global_batch_size? integer sequences of a window; sets accumulation
---@field lr number above 0
---@field objective string name of a unit, or a text like "per:book"
---@field reduction "mean"|"sum" over the ranks; window:weights follows it
---@field dtype "f32"|"f64"|"bf16" f32 to train, bf16 to train faster on GPUs, f64 to prove
---@field device string
---@field dropout number at least 0, below 1; what the model makes of it
---@field layout "packed"|"padded" padded exists to show that both give the same
---@field clip_norm? number largest norm of the whole gradient
---@field save_every? integer updates from one checkpoint to the next
---@field evaluate_every? integer updates from one loss on the validation split to the next
---@field stop_below? number validation loss below which training stops
---@field nonfinite "stop"|"skip" what becomes of a window whose loss or gradient is not finite
---@field keep integer newest checkpoints that stay
---@field [string] any the recipe's own keys

--- What marea.recipe is given.
---@class marea.Definition
---@field name string becomes a folder's name
---@field description? string one line about it
---@field config? table<string, any> values for keys that every recipe knows, and keys of its own
---@field corpus fun(config: marea.Config): marea.Corpus
---@field model fun(config: marea.Config): marea.Module the root; marea materializes it
---@field optimizer fun(model: marea.Module, config: marea.Config): marea.Optimizer
---@field plan fun(rows: marea.Sequence[], config: marea.Config): marea.Plan who reads what
---@field loss? fun(model: marea.Module, batch: marea.Batch): marea.Weights one loss per position,
---  unweighted, or a table of losses by the names of the objective's terms (default: cross-entropy)
---@field objective? string|marea.Weighting|marea.Term[] (default: global_token)
---@field units? table<string, marea.Weighting|marea.Term[]> objectives that can be chosen by name
---@field accumulate? fun(replica: marea.Replica|marea.Module, window: marea.Window) leaves the
---  window's gradient on every rank (default: as in recipes/minimum.lua)
---@field replicate? boolean false: accumulate gets the bare model and reduces (default true)
---@field schedule? fun(config: marea.Config): fun(update: integer): number a factor of lr

--- A declared recipe that nobody has loaded yet.
---@class marea.Declaration
---@field definition marea.Definition

---@class marea.RecipeFile
---@field name string relative to the recipe's folder, where it lies there
---@field path string

--- What the loader knows about a Lua file that it ran.
---@class marea.Context
---@field path string
---@field folder string with its last slash, or ""
---@field text string
---@field files marea.RecipeFile[] grows when functions of the file load more later
---@field results table what the file returned, and its count as `n`

---@class marea.LockedFile
---@field name string
---@field sha256 string

--- Hashes of everything that decides what a run computes.
---@class marea.Lock
---@field corpus string
---@field plan {ranks: integer, steps: integer, hash: string, chain: string}
---@field config {values: table<string, any>, hash: string}
---@field files marea.LockedFile[]
---@field accepted string[] fields whose difference was ever let through
---@field init? string sha-256 of the file whose weights the run began with

---@class marea.Difference
---@field field string "corpus", "plan", "config.KEY", "files.NAME" or "init"
---@field a any
---@field b any

--- Corpus, plan and lock of a recipe.
---@class marea.Prepared: marea.SessionParts
---@field corpus marea.Corpus
---@field plan marea.Plan
---@field lock marea.Lock
---@field world marea.World

--- A module of lua/marea/cli that is a command.
---@class marea.Command
---@field name string as on the command line
---@field summary string one sentence
---@field example? string
---@field hands_on? boolean the words of another command are handed on untouched
---@field define? fun(parser: table) adds arguments and options to an argparse command
---@field run fun(options: table): integer returns the exit code

--- An error value; tostring gives its message, which begins with the recipe's line.
---@class marea.Fault
---@field message string
---@field code integer exit code of the program, 1 to 7
---@field peer? boolean another rank has said it already
---@field file? string that is damaged
---@field tensor? string of that file in which the damage begins

--- Two gradients under a gate, as parity.json has them.
---@class marea.Gated
---@field failing integer components outside the gate that are not excused
---@field rounding integer components that are excused as rounding
---@field max_abs number
---@field max_rel number
---@field atol number
---@field rtol number
---@field worst? {parameter: string, index: integer, values: number[]} index from 1; a, then b
---@field ratio? number the one factor between a and b, where b is not zero
---@field shares marea.share[] components by the share of the gate that they use

---@class marea.ControlResult
---@field name string
---@field told_apart boolean whether this window can tell the control from the right answer
---@field detected boolean
---@field reason? string why it cannot be told apart
---@field meaning string what the control does wrong
---@field weighting? boolean it changes weights only
---@field max_abs? number
---@field failing? integer

--- parity.json
---@class marea.ParityReport
---@field recipe string
---@field components integer
---@field world integer
---@field objective string
---@field reduction "mean"|"sum"
---@field window table step, tokens, rank_tokens, sequences, masked_rank
---@field loss number of the window, by the reference
---@field checkpoint? string whose parameters the model had; without it, its first ones
---@field f32 marea.Gated
---@field f64 marea.Gated
---@field parameters marea.ParameterParity[]
---@field equal_on_all_ranks boolean whether the reduced gradients are the same bits
---@field begun_equal boolean whether the parameters were, before the window
---@field controls marea.ControlResult[]
---@field controls_pass boolean
---@field factor? {value: number, name: string?} the gradient is off by one factor throughout
---@field equals? {objective: string, factor: number, name: string?} it is another objective's
---@field steady {repeats: boolean, next: table?, depends_on_microbatch: integer?, good: boolean}
---@field uses_weights boolean whether the loop called window:weights
---@field pass boolean

--- What a checkpoint says besides tensors and history: state.json.
---@class marea.CheckpointState
---@field update integer
---@field world integer number of ranks
---@field streams string[] states of the ranks' own streams
---@field microbatches integer[] used so far, of each rank
---@field sequences integer[] used so far, of each rank
---@field lock marea.Lock
---@field history? string sha-256
