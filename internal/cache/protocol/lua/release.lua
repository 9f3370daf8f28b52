-- Gives up a lease without a result, and tells those that wait to ask again.
-- KEYS: lease
-- ARGV: token
-- Returns 1, or 0 if the token does not hold the lease.
-- Safe to run twice.
local lease, inboxes = read_lease(KEYS[1])
if lease.token ~= ARGV[1] then
  return 0
end
redis.call('DEL', KEYS[1])
wake(KEYS[1], inboxes, 'g', lease.generation)
return 1
