-- Returns the value, or takes the lease to load it, or registers for a wake-up by who has it.
-- KEYS: value, lease, intent
-- ARGV: token, lease ms (0: do not take it), keep ms (TTL of the hash), inbox ('' for none),
--       seen ('' for none, else '=' and the first bytes of the value that the caller cannot use), how many these may be
-- Returns {'value', entry} | {'lease', generation, 1 if taken over from a dead holder} | {'free'}
--       | {'held', generation, ms left, 1 if registered} | {'failed', token, error, ms left}
--       | {'writing', generation of the message that tells of the end, ms left, 1 if registered}
-- Safe to run twice: its own token means acquired. A copy that arrives after the lease was removed makes a lease of
-- another generation, with which the load that sent it can do nothing.
local token, length, seen = ARGV[1], tonumber(ARGV[2]), ARGV[5]

-- Has the holder, or the writer, tell the caller's inbox. Returns 1 if it will.
local function register(key)
  if ARGV[4] == '' then
    return 0
  end
  local reply = redis.pcall('HSET', key, 'inbox:' .. ARGV[4], 1)
  return type(reply) == 'number' and 1 or 0 -- not when out of memory
end

local value = redis.pcall('GET', KEYS[1])
if type(value) == 'string' and '=' .. string.sub(value, 1, tonumber(ARGV[6])) ~= seen then
  return {'value', value}
end

local now, micros = now_ms()
if redis.call('EXISTS', KEYS[3]) == 1 then
  local left = read_intent(KEYS[3], now)
  if left > 0 then
    return {'writing', WRITING, left, register(KEYS[3])}
  end
  redis.call('DEL', KEYS[3])
end

local h = redis.pcall('HMGET', KEYS[2], 'token', 'deadline', 'generation', 'failed', 'error', 'length')
if h.err then
  redis.call('DEL', KEYS[2]) -- a key of another type, where only leases belong
  h = {}
end
local holder, generation = h[1], h[3]
if holder == token then
  return {'lease', generation, 0}
end

local left = tonumber(h[2] or 0) - now
if left > 0 and left <= tonumber(h[6] or 0) then -- more than its length: the clock was set back, nobody renews it
  if not holder then
    return {'failed', h[4], h[5], left}
  end
  return {'held', generation, left, register(KEYS[2])}
end

if length == 0 then
  return {'free'}
end
generation = generation or token .. string.format('%016.0f', micros)
redis.call('HSET', KEYS[2], 'token', token, 'deadline', string.format('%.0f', now + length), 'length', length,
  'generation', generation)
local reply = redis.pcall('PEXPIRE', KEYS[2], ARGV[3])
if type(reply) == 'table' then
  redis.call('DEL', KEYS[2]) -- not allowed: no key may be left without a TTL
  return reply
end
return {'lease', generation, holder and 1 or 0}
