std = "lua54"
max_line_length = 100
exclude_files = { "build", "outputs" }
files["spec"] = { std = "+busted" }
-- Functions without bodies, for language servers.
files["lua/marea/annotations"] = { ignore = { "212", "241", "431" } }
