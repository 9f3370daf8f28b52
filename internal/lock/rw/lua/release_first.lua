-- Runs before release.lua, as one script with it.
if is_lone() then
  release_lone()
  return 1
end
