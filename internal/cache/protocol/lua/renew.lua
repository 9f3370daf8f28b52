-- Extends a lease.
-- KEYS: lease, intents of transactions
-- ARGV: token, lease ms, keep ms (TTL of the hash)
-- Returns 1, or 0 if the token does not hold the lease.
-- Safe to run twice.
local lease, now, keep = redis.call('HMGET', KEYS[1], 'token', 'until'), now_ms(), ARGV[3]
if lease[1] ~= ARGV[1] then
  return 0
end
if lease[2] then
  local limit, over = limit_of(KEYS[2], now)
  if over then
    return 0
  end
  keep = math.min(keep, limit or keep)
end
redis.call('HDEL', KEYS[1], '') -- a script that has written something may write more though memory is full
redis.call('HSET', KEYS[1], 'deadline', string.format('%.0f', now + ARGV[2]), 'length', ARGV[2])
redis.call('PEXPIRE', KEYS[1], keep)
return 1
