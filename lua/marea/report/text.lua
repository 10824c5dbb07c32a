-- Numbers as a report shows them, and what its sections are made of.

local html = require "marea.report.html"

local text = {}

--- A loss, or a dash where there is none.
---@param number number?
---@return string
function text.loss(number) return number and ("%.4f"):format(number) or "\u{2013}" end

--- Four digits.
---@param number number?
---@return string
function text.short(number) return number and ("%.4g"):format(number) or "\u{2013}" end

--- An error of a gradient: three digits, "0" for none, and a word for one without bounds.
---@param number number?
---@return string
function text.error(number)
  if not number then return "not finite" end
  return number == 0 and "0" or ("%.2e"):format(number)
end

--- Hundredths.
---@param share number?
---@return string
function text.percent(share)
  return share and ("%.2f %%"):format(100 * share) or "\u{2013}"
end

---@class marea.SectionParts
---@field id string
---@field title string
---@field lead? any a sentence or two
---@field figure? marea.Markup
---@field beside? any table beside the figure, or below the lead
---@field below? any

--- A section of the page: its head, what it says, a figure and a table beside it.
---@param given marea.SectionParts
---@return marea.Markup section
function text.section(given)
  local parts = { html.element("h2", nil, given.title) }
  if given.lead then parts[#parts + 1] = html.element("p", { class = "lead" }, given.lead) end
  if given.figure then
    parts[#parts + 1] = html.element("div", { class = "pair" },
                                      { given.figure, given.beside })
  elseif given.beside then
    parts[#parts + 1] = html.group(given.beside)
  end
  if given.below then parts[#parts + 1] = html.group(given.below) end
  return html.element("section", { id = given.id }, parts)
end

return text
