-- Extends a lease.
-- KEYS: lock
-- ARGV: id, token (its owner's, or the id), lease ms, least fence that the lock is to have ('0': any)
-- Returns 1, 0 if the lock is held no more, or -1 if it was revoked.
-- Safe to run twice.
local key, length = KEYS[1], tonumber(ARGV[3])

local lock = read(key, ARGV[1])
if not holds(lock, ARGV[1], ARGV[2]) then
  return redis.call('HGET', key, 'revoked') == ARGV[2] and -1 or 0
end
local now = clock()
redis.call('HSET', key, 'deadline', int(now + length), 'length', length)
if tonumber(ARGV[4]) > tonumber(lock.fence) then
  redis.call('HSET', key, 'fence', ARGV[4])
end
keep(key, lock.kept, now, length)
return 1
