std = "lua54"
max_line_length = 100
-- Templates have places for what `marea new` fills in.
exclude_files = { "build", "outputs", "lua/marea/templates" }
files["spec"] = { std = "+busted" }
-- Functions without bodies, for language servers.
files["lua/marea/annotations"] = { ignore = { "212", "241", "431" } }
