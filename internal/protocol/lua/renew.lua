-- Extends a lease.
-- KEYS: lease
-- ARGV: token, lease ms, keep ms (TTL of the hash)
-- Returns 1, or 0 if the token does not hold the lease.
-- Safe to run twice.
if redis.call('HGET', KEYS[1], 'token') ~= ARGV[1] then
  return 0
end
redis.call('HSET', KEYS[1], 'deadline', string.format('%.0f', (now_ms()) + ARGV[2]), 'length', ARGV[2])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return 1
