-- Makes a reader the writer if it is alone and no writer waits: a reader that jumped the queue could starve it.
-- KEYS: as in the prelude
-- ARGV: token, lease ms, its fence
-- Returns the new fence, or 1 if others hold or wait, 0 if the token does not hold the lock, -1 if that is because the
-- lock was revoked.
-- Safe to run twice: a writer stays one. A copy that arrives late has an old fence, and only renews the lease.
local token = ARGV[1]
advance()
local mode, till = renew(token, tonumber(ARGV[2]))
if not mode then
  return not_held(ARGV[3])
end
if mode == 'w' and whole(fence) == ARGV[3] then -- its downgrade has not arrived, and must not arrive when it writes again
  end_writer()
  hold_read(token, till)
  promote()
  mode = 'r'
end
if mode == 'r' then
  if redis.call('ZCARD', readers) > 1 or redis.call('ZCARD', writers) > 0 or whole(fence) ~= ARGV[3] then
    return 1
  end
  redis.call('DEL', readers)
  read_until = 0
  hold_write(token, till)
end
return fence
