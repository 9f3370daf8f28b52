-- Creates a counter, with all units in its first segment.
-- KEYS: segment
-- ARGV: token, units, TTL in ms (0: none)
-- Returns 1, or 0 if there is one already.
-- Safe to run twice: its own token means created.
if redis.call('EXISTS', KEYS[1]) == 1 then
  return redis.call('HGET', KEYS[1], 'token') == ARGV[1] and 1 or 0
end
local ttl, deadline = tonumber(ARGV[3]), '0'
if ttl > 0 then
  local t = redis.call('TIME')
  deadline = string.format('%.0f', t[1] * 1000 + math.floor(t[2] / 1000) + ttl)
end
redis.call('HSET', KEYS[1], 'token', ARGV[1], 'left', ARGV[2], 'version', 0, 'until', deadline)
if ttl > 0 then
  local reply = redis.pcall('PEXPIREAT', KEYS[1], deadline)
  if type(reply) == 'table' then
    redis.call('DEL', KEYS[1]) -- not allowed: no key may be left without a TTL
    return reply
  end
end
return 1
