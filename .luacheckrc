std = "lua54"
max_line_length = 100
exclude_files = { "build", "outputs" }
files["spec"] = { std = "+busted" }
