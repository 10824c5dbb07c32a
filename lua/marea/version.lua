-- The version of marea; the build reads it from here.
return "0.1.0"
