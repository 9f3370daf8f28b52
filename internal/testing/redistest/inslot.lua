-- Comes before the source of a script, and refuses what it publishes to a channel that is not in the slot of its keys.
local redis = (function(real)
  local function refusing(run, raise)
    return function(command, ...)
      local name = string.upper(command)
      if name ~= 'PUBLISH' and name ~= 'SPUBLISH' or real.call('CLUSTER', 'KEYSLOT', (...)) == real.call('CLUSTER', 'KEYSLOT', KEYS[1]) then
        return run(command, ...)
      end
      local refused = {err = 'ERR Script attempted to access keys that do not hash to the same slot'}
      return raise and error(refused) or refused
    end
  end
  return setmetatable({call = refusing(real.call, true), pcall = refusing(real.pcall)}, {__index = real})
end)(redis)

