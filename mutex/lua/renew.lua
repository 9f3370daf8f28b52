-- Extends a lease.
-- KEYS: lock
-- ARGV: id, token (its owner's, or the id), lease ms, the lowest fence that the lock may have then
-- Returns 1, 0 if the id no longer holds the lock, or -1 if the lock was revoked.
-- Safe to run twice.
local key, id, token = KEYS[1], ARGV[1], ARGV[2]

if not holds(id, token) then
  return redis.call('HGET', key, 'revoked') == token and -1 or 0
end
local _, _, inbox = parse(s.lease)
if tonumber(ARGV[4]) > tonumber(s.fence) then
  although_full(key)
  redis.call('HSET', key, 'fence', ARGV[4])
end
extend(key, inbox, tonumber(ARGV[3]))
return 1
