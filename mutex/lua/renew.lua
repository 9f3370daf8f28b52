-- Extends a lease.
-- KEYS: lock
-- ARGV: id, token (its owner's, or the id), lease ms, the least fence that the lock is to have
-- Returns 1, 0 if the lock is held no more, or -1 if it was revoked.
-- Safe to run twice.
local key, id, token = KEYS[1], ARGV[1], ARGV[2]

if not holds(id, token) then
  return redis.call('HGET', key, 'revoked') == token and -1 or 0
end
if tonumber(ARGV[4]) > tonumber(s.fence) then
  redis.call('HSET', key, 'fence', ARGV[4])
end
local _, _, inbox = parse(s.lease)
return extend(key, inbox, tonumber(ARGV[3])) or 1
