-- Takes the lock from all that hold it, and hands it on.
-- KEYS: as in the prelude
-- ARGV: id of this revocation
-- Returns how many held it.
-- Safe to run twice: the second run finds its id, and leaves the next holders alone.
expire()
local held = 0
if redis.call('HGET', lock, 'revoker') ~= ARGV[1] then
  held = writer and 1 or redis.call('ZCARD', readers)
  if writer then
    end_writer()
  end
  redis.call('DEL', readers)
  read_until = 0
  -- It takes a fence of its own: a token with an older fence and no lock was revoked.
  redis.call('HSET', lock, 'revoker', ARGV[1], 'revoked', next_fence(), 'fence', whole(fence))
  keep(lock)
end
promote()
return held
