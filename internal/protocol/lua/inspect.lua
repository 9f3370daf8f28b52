-- Reads everything that Redis has for a key.
-- KEYS: value, lease, intent
-- Returns {server time in ms, ms until Redis expires the value (-2: there is none), value or false, lease and intent as HGETALL
-- returns them, the first hundred intents of transactions and when each ends}. A key of another type is an empty value, or nothing.
-- Safe to run twice: it writes nothing.
local value = redis.pcall('GET', KEYS[1])
if type(value) == 'table' then
  value = ''
end

local function fields(key)
  local flat = redis.pcall('HGETALL', key)
  return flat.err and {} or flat
end
local untils = redis.pcall('ZRANGE', base_of(KEYS[1]) .. ':until', 0, 99, 'WITHSCORES')
return {(now_ms()), redis.call('PTTL', KEYS[1]), value, fields(KEYS[2]), fields(KEYS[3]), untils.err and {} or untils}
