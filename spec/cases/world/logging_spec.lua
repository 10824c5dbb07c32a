-- Public cases of logging: what is printed is what was trained.

local trainer_of = require "marea.trainer"
local cases = dofile "spec/support/cases.lua"
local training = dofile "spec/support/training.lua"

-- By construction: the loss that is reported is summed over all ranks and microbatches before any
-- weight is applied, and divided once, by the count.
describe("B32: the loss of an update", function()
  local ranks = { { { { 1 } }, { { 4 } } }, { { { 2, 4 } }, { { 5, 5, 5, 5, { 1000 } } } } }
  local wrong = { { 4.0, "rank 0's last microbatch" }, { 2.5, "rank 0's own mean" },
                  { 1.25, "rank 0's scaled loss" }, { 6.5, "rank 1's scaled loss" },
                  { 1.9375, "divided by K again" }, { 7.75, "times W" } }

  it("is 3.875, whatever the objective, the reduction and the layout", function()
    local group = cases.group(2)
    if not group then return end
    for _, objective in ipairs { "global_token", "mean_of_means", "per_sequence" } do
      for _, reduction in ipairs { "mean", "sum" } do
        for _, layout in ipairs { "packed", "padded" } do
          local settings = { objective = objective, reduction = reduction, layout = layout }
          local trainer = trainer_of.new(cases.session(training.toy(ranks, {}, settings), group))
          cases.check(31 / 8, trainer:advance().loss_per_token, wrong)
        end
      end
    end
  end)

  it("is that of one process with the same items", function()
    local one = { { ranks[1][1][1], ranks[1][2][1], ranks[2][1][1], ranks[2][2][1] } }
    local trainer = trainer_of.new(cases.session(training.toy { one }, cases.alone()))
    cases.check(31 / 8, trainer:advance().loss_per_token, wrong)
  end)

  it("is beside the gradient's objective, which is another number where it should be", function()
    local group = cases.group(2)
    if not group then return end
    local recipe = training.toy(ranks, {}, { objective = "mean_of_means" })
    local result = trainer_of.new(cases.session(recipe, group)):advance()
    cases.check(31 / 8, result.loss_per_token, wrong)
    cases.check((5 / 2 + 26 / 6) / 2, result.grad_norm, { { 31 / 8, "the token mean" } })
  end)
end)
