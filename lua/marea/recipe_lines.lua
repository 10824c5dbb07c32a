-- Where the fields of a recipe stand in its text.

local recipe_lines = {}

--- Finds "recipes/x.lua:12": the line on which a field is set, else that of the declaration, else
--- "".
---@param path? string
---@param text? string of the recipe's file
---@return fun(key: string): string place
function recipe_lines.finder(path, text)
  return function(key)
    if not text then return path or "" end
    local number, declared = 0, nil
    for line in (text .. "\n"):gmatch("(.-)\n") do
      number = number + 1
      local code = line:gsub("%-%-.*$", "")
      if code:find("%f[%w_]recipe%s*[{(]") then declared = declared or number end
      local _, last = code:find("%f[%w_]" .. key:gsub("%W", "%%%0") .. "%s*=")
      if last and key ~= "" and declared and code:sub(last + 1, last + 1) ~= "=" then
        return ("%s:%d"):format(path, number)
      end
    end
    return declared and ("%s:%d"):format(path, declared) or path
  end
end

return recipe_lines
