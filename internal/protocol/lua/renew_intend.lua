-- Extends an intent. What is cached still ends when it would have.
-- KEYS: value
-- ARGV: intent, ms for which it stands, ms for which its end is remembered
-- Returns 1, or 0 if the intent is gone: it is done, has expired or was evicted.
-- Safe to run twice.
local untils, now = base_of(KEYS[1]) .. ':until', now_ms()
limit_of(KEYS[1], now)
if not redis.pcall('ZSCORE', untils, ARGV[1]) then
  return 0
end
local reply = redis.pcall('ZADD', untils, string.format('%.0f', now + ARGV[2]), ARGV[1])
if type(reply) == 'table' then
  return reply
end
extend_ttl(untils, ARGV[2] + ARGV[3])
return 1
