-- Comes before the source of a script, and ends it with an error when it calls a command with a key that is not in its KEYS.
local redis = (function(real)
  local declared, keyless, onlyKeys = {}, {TIME = true, PUBLISH = true}, {DEL = true, EXISTS = true, MGET = true}
  for _, key in ipairs(KEYS) do
    declared[key] = true
  end
  local function checked(run)
    return function(command, ...)
      local keys = onlyKeys[command] and {...} or keyless[command] and {} or {(...)}
      for _, key in ipairs(keys) do
        if not declared[key] then
          error('undeclared key: ' .. command .. ' ' .. key)
        end
      end
      return run(command, ...)
    end
  end
  return setmetatable({call = checked(real.call), pcall = checked(real.pcall)}, {__index = real})
end)(redis)

