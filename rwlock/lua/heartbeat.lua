-- Says that a waiter is alive.
-- KEYS: as in the prelude
-- ARGV: token, its ticket, its grace in ms
-- Returns 1 if it is queued, 0 if it has to ask: it was granted the lock, or forgotten, or is in a place that it does not
-- know of, for which it must not take an older grant.
-- Safe to run twice.
local token = ARGV[1]
advance()
local queue, ticket = writers, redis.call('ZSCORE', writers, token)
if not ticket then
  queue, ticket = waiting, redis.call('ZSCORE', waiting, token)
end
if ticket ~= ARGV[2] then
  return 0
end
redis.call('ZADD', alive, whole(now + ARGV[3]), token)
keep(lock)
keep(queue)
keep(alive)
return 1
