-- Gives up a hold, but leaves the lock held for a while. Nobody can renew or unlock it then.
-- KEYS: lock, queue, gone
-- ARGV: id, which has no owner, how many ms the lock stays held, 1 if requests of the id may still be on their way (else 0)
-- Returns 1, 0 if the id no longer held the lock, or -1 if the lock was revoked.
-- Safe to run twice: the first run gives the lock another token.
local key, gone, id, parked = KEYS[1], KEYS[3], ARGV[1], ARGV[1] .. '+'
if s.token == parked then
  return 1
end
if ARGV[3] == '1' then
  remember(key, gone, id)
end
if not holds(id, id) then
  return redis.call('HGET', key, 'revoked') == id and -1 or 0
end
although_full(key)
redis.call('HSET', key, 'token', parked)
extend(key, '', tonumber(ARGV[2]))
return 1
