-- Returns the value, or takes the lease to load it, or registers for a wake-up by who has it.
-- KEYS: value, lease
-- ARGV: token, lease ms, keep ms (TTL of the hash), inbox ('' for none),
--       seen ('' for none, else '=' and how the value that the caller cannot use begins)
-- Returns {'value', entry} | {'lease', generation, 1 if taken over from a dead holder}
--       | {'held', generation, ms left} | {'failed', token, error, ms left}
-- Safe to run twice: its own token means acquired.
local token, seen = ARGV[1], ARGV[5]

local value = redis.pcall('GET', KEYS[1])
if type(value) == 'string' then
  local unusable = seen ~= '' and string.sub(value, 1, #seen - 1) == string.sub(seen, 2)
  if not unusable then
    return {'value', value}
  end
end

local h = redis.pcall('HMGET', KEYS[2], 'token', 'deadline', 'generation', 'failed', 'error')
if h.err then
  redis.call('DEL', KEYS[2]) -- a key of another type, where only leases belong
  h = {}
end
local holder, deadline, generation = h[1], tonumber(h[2] or 0), h[3]
if holder == token then
  return {'lease', generation, 0}
end

local now = now_ms()
if deadline > now then
  if not holder then
    return {'failed', h[4], h[5], deadline - now}
  end
  if ARGV[4] ~= '' then
    redis.call('HSET', KEYS[2], 'inbox:' .. ARGV[4], 1)
  end
  return {'held', generation, deadline - now}
end

generation = generation or token
redis.call('HSET', KEYS[2], 'token', token, 'deadline', string.format('%.0f', now + ARGV[2]), 'generation', generation)
redis.call('PEXPIRE', KEYS[2], ARGV[3])
return {'lease', generation, holder and 1 or 0}
