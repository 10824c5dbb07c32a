-- The specs that `marea test --device NAME` runs: those that compute, and so differ from one device
-- to the next. What is decided before anything is computed is the same on all of them.

return {
  "spec/unit/ops_golden_spec.lua", "spec/unit/ops_closed_form_spec.lua",
  "spec/unit/ops_extents_spec.lua", "spec/unit/ops_finite_difference_spec.lua",
  "spec/unit/ops_refusal_spec.lua", "spec/unit/first_gradient_spec.lua",
  "spec/unit/tape_spec.lua", "spec/unit/dropout_spec.lua", "spec/unit/random_spec.lua",
  "spec/unit/comparison_spec.lua", "spec/unit/safetensors_spec.lua",
  "spec/unit/unit_spec.lua", "spec/unit/optimizer_spec.lua", "spec/unit/state_spec.lua",
  "spec/unit/window_spec.lua", "spec/unit/evaluate_spec.lua",
  "spec/unit/minimum_window_spec.lua", "spec/unit/gpt_adamw_spec.lua",
  "spec/unit/device_spec.lua",
  "spec/world/comm_spec.lua", "spec/world/group_spec.lua", "spec/world/replica_spec.lua",
  "spec/world/minimum_window_spec.lua", "spec/world/trainer_spec.lua",
  "spec/world/saves_spec.lua", "spec/world/parity_spec.lua",
  "spec/program/device_training_spec.lua", "spec/program/device_parity_spec.lua",
}
