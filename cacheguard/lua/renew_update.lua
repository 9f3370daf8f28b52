-- Extends a writer's intent.
-- KEYS: intent
-- ARGV: token, intent ms
-- Returns 1, or 0 if the intent is gone: another one must not be made, as the update may have ended.
-- Safe to run twice.
if redis.call('HEXISTS', KEYS[1], 'writer:' .. ARGV[1]) == 0 then
  return 0
end
redis.call('HSET', KEYS[1], 'writer:' .. ARGV[1], string.format('%.0f', (now_ms()) + ARGV[2]))
extend_ttl(KEYS[1], ARGV[2])
return 1
