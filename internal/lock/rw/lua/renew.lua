-- Extends a lease, of a reader or a writer.
-- KEYS: as in the prelude
-- ARGV: token, lease ms, its fence
-- Returns 1, or 0 if the token does not hold the lock, -1 if that is because the lock was revoked.
-- Safe to run twice.
advance()
if renew(ARGV[1], tonumber(ARGV[2])) then
  return 1
end
return not_held(ARGV[3])
