-- Extends a lease.
-- KEYS: as in the prelude
-- ARGV: token, lease ms, the fence it was granted with
-- Returns 1, or 0 if the token has no permit, -1 if that is because it was revoked.
-- Safe to run twice.
advance()
if renew(ARGV[1], tonumber(ARGV[2])) then
  return 1
end
return not_held(ARGV[3])
