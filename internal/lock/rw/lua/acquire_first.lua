-- Runs before acquire.lua, as one script with it.
local free = acquire_free()
if free then
  return free
end
