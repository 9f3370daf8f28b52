-- Extends a lease at the one key that has it. In a cluster's slot that is being moved, Redis runs no script some of whose keys do not
-- exist, or are on another node. Nobody else can have got the lock, or ended the lease, without having written this key.
-- KEYS: the lock, or its sorted set of those that hold, by deadline
-- ARGV: token, lease ms, 1 if the key is the lock, which the token holds for writing, else 0
-- Returns 1, or 0 if the token does not hold, as far as this key says.
-- Safe to run twice.
local key, token, time = KEYS[1], ARGV[1], redis.call('TIME')
local now, till = time[1] * 1000 + math.floor(time[2] / 1000), nil
if ARGV[3] == '1' then
  local writer = redis.call('HMGET', key, 'writer', 'deadline')
  till = writer[1] == token and writer[2]
else
  till = redis.call('ZSCORE', key, token)
end
if not till or tonumber(till) <= now then
  return 0
end
till = string.format('%.0f', math.max(till, now + ARGV[2]))
if ARGV[3] == '1' then
  redis.call('HDEL', key, '') -- a script that has written something may write more though memory is full
  redis.call('HSET', key, 'deadline', till)
else
  redis.call('ZREM', key, '')
  redis.call('ZADD', key, till, token)
end
local least = 600000 + ARGV[2] -- as keep in the prelude has it
if redis.call('PTTL', key) < least then
  redis.call('PEXPIRE', key, string.format('%.0f', 2 * least))
end
return 1
