-- Extends a writer's intent.
-- KEYS: intent
-- ARGV: token, intent ms
-- Returns 1, or 0 if the intent is gone. It must not be made again, because the update may have ended.
-- Safe to run twice.
if redis.call('HEXISTS', KEYS[1], 'writer:' .. ARGV[1]) == 0 then
  return 0
end
redis.call('HDEL', KEYS[1], '') -- a script that has written something may write more though memory is full
local reply = set_intent(KEYS[1], ARGV[1], ARGV[2])
if type(reply) == 'table' then
  return reply
end
extend_ttl(KEYS[1], ARGV[2])
return 1
