-- Takes the permits from all that have one, and hands them on.
-- KEYS: as in the prelude
-- ARGV: id of this revocation
-- Returns how many had one.
-- Safe to run twice: the second run finds its id, and leaves the next holders alone.
expire()
local taken = 0
if redis.call('HGET', lock, 'revoker') ~= ARGV[1] then
  taken = held
  redis.call('DEL', holders)
  held = 0
  -- It takes a fence of its own: a token with an older fence and no permit was revoked.
  redis.call('HSET', lock, 'revoker', ARGV[1], 'revoked', next_fence(), 'fence', whole(fence))
  keep(lock)
end
hand_on()
return taken
