-- Reads everything that Redis has for a key.
-- KEYS: value, lease, intent
-- Returns {server time in ms, ms until Redis expires the value (-2: there is none), value or false, lease and intent as HGETALL
-- returns them}. A key of another type is an empty value, or no lease or intent.
-- Safe to run twice: it writes nothing.
local value = redis.pcall('GET', KEYS[1])
if type(value) == 'table' then
  value = ''
end

local function fields(key)
  local flat = redis.pcall('HGETALL', key)
  return flat.err and {} or flat
end
return {(now_ms()), redis.call('PTTL', KEYS[1]), value, fields(KEYS[2]), fields(KEYS[3])}
