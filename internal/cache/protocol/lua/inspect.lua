-- Reads what Redis has for a key, and the beginning of its value.
-- KEYS: value, lease, intent, intents of transactions, text of the lease's failure
-- ARGV: how many bytes of the value to read
-- Returns {server time in ms, ms until Redis expires the value (-2: there is none), beginning of the value or false, its size (-1: not
-- known, as the user may not ask), lease and intent as HGETALL returns them, text of the last failure or false,
-- the first hundred intents of transactions and when each ends}. A key of another type is an empty value, or nothing.
-- Safe to run twice: it writes nothing.
local value, size, left = redis.pcall('GETRANGE', KEYS[1], 0, ARGV[1] - 1), redis.pcall('STRLEN', KEYS[1]), redis.call('PTTL', KEYS[1])
if type(value) == 'table' then
  value = ''
end

local function fields(key)
  local flat = redis.pcall('HGETALL', key)
  return flat.err and {} or flat
end
local untils = redis.pcall('ZRANGE', KEYS[4], 0, 99, 'WITHSCORES')
return {(now_ms()), left, left ~= -2 and value, type(size) == 'number' and size or -1, fields(KEYS[2]), fields(KEYS[3]),
  redis.call('GET', KEYS[5]), untils.err and {} or untils}
