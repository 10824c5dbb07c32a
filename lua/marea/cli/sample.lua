-- marea sample: text from a checkpoint of a recipe of text.

local arguments = require "marea.cli.arguments"
local evaluate = require "marea.evaluate"
local find_checkpoint = require "marea.cli.find_checkpoint"
local json = require "marea.json"
local recipe_of = require "marea.recipe"
local sample = require "marea.sample"
local together = require "marea.together"
local world_of = require "marea.world"

local default_tokens, default_seed = 256, 1

local function escaped(bytes)
  return (bytes:gsub(".", function(byte) return ("\\x%02X"):format(byte:byte()) end))
end

-- Characters that steer a terminal: ASCII's, but newlines and tabs, and U+0080 to U+009F.
local function without_controls(text)
  text = text:gsub("[%c\x7F]", function(control)
    return control ~= "\n" and control ~= "\t" and escaped(control) or nil
  end)
  return (text:gsub("\xC2[\x80-\x9F]", escaped))
end

-- A text as a terminal can show it: what is no UTF-8, or steers, as \xNN.
local function shown(text)
  local parts, at = {}, 1
  while at <= #text do
    local good, bad = utf8.len(text, at)
    parts[#parts + 1] = without_controls(text:sub(at, good and #text or bad - 1))
    if not good then parts[#parts + 1] = escaped(text:sub(bad, bad)) end
    at = good and #text + 1 or bad + 1
  end
  return table.concat(parts)
end

local function whole_number(least, name)
  return function(word)
    local number = math.tointeger(tonumber(word))
    if not number or number < least then
      return nil, ("--%s must be a whole number of %d or more, not %s"):format(name, least, word)
    end
    return number
  end
end

local function positive(word)
  local number = tonumber(word)
  if not number or not (number > 0 and number < math.huge) then
    return nil, ("--temperature must be a number above 0, not %s (--greedy takes the likeliest)")
      :format(word)
  end
  return number
end

local function show(options, result)
  if options.json then
    local bytes = { result.text:byte(1, -1) }
    result.bytes = json.array(bytes)
    print(json.encode(result))
    return
  end
  local text = result.prompt .. result.text
  io.stdout:write(options.raw and text or shown(text) .. "\n")
  io.stdout:flush()
  if options.tokens and result.stopped == "context" then
    io.stderr:write(("marea: stopped at the model's context of %d bytes\n"):format(result.context))
  end
end

local function run_command(options)
  local world = world_of.get()
  local recipe = recipe_of.require(options.recipe, options.settings, world:size())
  local session = evaluate.session(recipe, world)
  sample.check(session)
  local own = options.outputs .. "/" .. (options.run or recipe.name)
  local folder = together.on_root(world, function()
    return find_checkpoint(options.outputs, options.checkpoint, own)
  end)
  evaluate.load(session, folder)
  together.on_root(world, function()
    local result = sample.text(session, {
      prompt = options.prompt, tokens = options.tokens or default_tokens, greedy = options.greedy,
      temperature = options.temperature, top_k = options.top_k, seed = options.seed })
    result.checkpoint = folder
    show(options, result)
  end)
  return 0
end

---@type marea.Command
return {
  name = "sample",
  summary = "Text from a checkpoint of a recipe of text.",
  example = "marea sample recipes/verses.lua --prompt 'And the ' --temperature 0.8 --seed 3",
  define = function(parser)
    arguments.recipe(parser)
    parser:option("--checkpoint", "A checkpoint, a run, or 'latest' of the recipe's run.", "latest")
      :argname("FOLDER")
    parser:option("--prompt", "What the text begins with.", ""):argname("TEXT"):show_default(false)
    parser:option("--tokens", ("How many bytes to add (default: as many as fit, %d at the most).")
                  :format(default_tokens)):argname("N"):convert(whole_number(0, "tokens"))
    parser:flag("--greedy", "Take the likeliest byte each time; the same text each time.")
    parser:option("--temperature", "Above 1 bolder, below 1 safer.", "1"):argname("T")
      :convert(positive)
    parser:option("--top-k", "Draw among the K likeliest bytes only."):argname("K")
      :convert(whole_number(1, "top-k"))
    parser:option("--seed", "Another seed, another text.", tostring(default_seed)):argname("S")
      :convert(whole_number(0, "seed"))
    parser:flag("--raw", "Write the bytes as they are, also those that are no text.")
  end,
  run = run_command,
}
