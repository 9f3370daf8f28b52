-- Comes before the source of a script, behind a line that sets in_slot. It refuses what the script publishes, in the words of a serverless
-- offering; if in_slot, only to a channel that is not in the slot of the script's keys.
local redis = (function(real)
  local function refusing(run, raise)
    return function(command, ...)
      local name = string.upper(command)
      if name ~= 'PUBLISH' and name ~= 'SPUBLISH' or
        in_slot and real.call('CLUSTER', 'KEYSLOT', (...)) == real.call('CLUSTER', 'KEYSLOT', KEYS[1]) then
        return run(command, ...)
      end
      local refused = {err = 'ERR Script attempted to access keys that do not hash to the same slot'}
      return raise and error(refused) or refused
    end
  end
  return setmetatable({call = refusing(real.call, true), pcall = refusing(real.pcall)}, {__index = real})
end)(redis)
