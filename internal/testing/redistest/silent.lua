-- Comes before the source of a script, and refuses what it publishes, in the words of a serverless offering.
local redis = (function(real)
  local function refusing(run, raise)
    return function(command, ...)
      if string.upper(command) ~= 'PUBLISH' then
        return run(command, ...)
      end
      local refused = {err = 'ERR Script attempted to access keys that do not hash to the same slot'}
      return raise and error(refused) or refused
    end
  end
  return setmetatable({call = refusing(real.call, true), pcall = refusing(real.pcall)}, {__index = real})
end)(redis)

