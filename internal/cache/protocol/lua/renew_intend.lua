-- Extends an intent. Values that are cached already still end when they would have.
-- KEYS: intents of transactions; the leases and the values of all version slots, or nothing more: then what expired intents have left stays
--       for the next script, and none is stored before that
-- ARGV: intent, how long it stands in ms, how long its end is remembered in ms
-- Returns 1, or 0 if the intent is gone: it is done, has expired or was evicted.
-- Safe to run twice.
local untils, now = KEYS[1], now_ms()
if KEYS[2] then
  clear_expired(untils, now)
end
local ends = redis.pcall('ZSCORE', untils, ARGV[1])
if not ends or type(ends) == 'string' and ends - now <= 0 then
  return 0
end
redis.call('ZREM', untils, '') -- a script that has written something may write more though memory is full
local reply = redis.pcall('ZADD', untils, string.format('%.0f', now + ARGV[2]), ARGV[1])
if type(reply) == 'table' then
  return reply
end
extend_ttl(untils, ARGV[2] + ARGV[3])
return 1
