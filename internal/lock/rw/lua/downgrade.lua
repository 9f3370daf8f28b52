-- Makes a writer a reader, and admits the readers that wait.
-- KEYS: as in the prelude
-- ARGV: token, lease ms, its fence
-- Returns 1, or 0 if the token does not hold the lock, -1 if that is because the lock was revoked.
-- Safe to run twice: a reader stays one. A copy that arrives late has an old fence, and only renews the lease.
local token = ARGV[1]
advance()
local mode, till = renew(token, tonumber(ARGV[2]))
if not mode then
  return not_held(ARGV[3])
end
if mode == 'w' and whole(fence) == ARGV[3] then
  end_writer()
  hold_read(token, till)
  promote()
end
return 1
