local nearest = require "marea.nearest"

describe("nearest", function()
  it("counts insertions, removals, replacements and swaps of neighbours", function()
    local cases = {
      { "", "", 0 }, { "train", "train", 0 }, { "", "abc", 3 }, { "abc", "", 3 },
      { "trian", "train", 1 }, { "trin", "train", 1 }, { "traiin", "train", 1 },
      { "brain", "train", 1 }, { "kitten", "sitting", 3 }, { "ca", "abc", 3 }, { "ab", "ba", 1 },
    }
    for _, case in ipairs(cases) do
      assert.are.equal(case[3], nearest.distance(case[1], case[2]), case[1] .. " to " .. case[2])
      assert.are.equal(case[3], nearest.distance(case[2], case[1]), case[2] .. " to " .. case[1])
    end
  end)

  it("finds the nearest name, and none when all are far", function()
    local names = { "accumulation", "train", "lr", "report", "parity", "check-loss" }
    assert.are.equal("train", nearest.find("trian", names))
    assert.are.equal("accumulation", nearest.find("acumulations", names))
    assert.are.equal("parity", nearest.find("PARITY", names))
    assert.are.equal("lr", nearest.find("rl", names))
    assert.is_nil(nearest.find("quantum", names))
    assert.is_nil(nearest.find("x", names))
    assert.is_nil(nearest.find("train", {}))
  end)

  it("takes the beginning of a name for it", function()
    assert.are.equal("check-loss", nearest.find("check", { "train", "check-loss" }))
  end)

  it("prefers the first in alphabetical order of equally near names", function()
    assert.are.equal("cat", nearest.find("bat", { "hat", "cat" }))
    assert.are.equal("cat", nearest.find("bat", { "cat", "hat" }))
  end)

  it("words a hint", function()
    assert.are.equal("; did you mean 'train'?", nearest.hint("trian", { "train" }))
    assert.are.equal("", nearest.hint("quantum", { "train" }))
  end)
end)
