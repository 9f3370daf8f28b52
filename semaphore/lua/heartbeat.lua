-- Says that a waiter is alive.
-- KEYS: as in the prelude
-- ARGV: token, its ticket, its grace in ms
-- Returns in how many ms it may be worth asking again if the token is queued under its ticket, else 0: it must ask. Then it was
-- granted a permit, or forgotten, or has a place that it does not know of: an older grant does not count for that.
-- Safe to run twice.
local token = ARGV[1]
advance()
local ticket, leaves = ticket_of(token)
if ticket ~= ARGV[2] or not redis.call('ZSCORE', queue, token) then
  return 0
end
although_full()
stay(queue, token, math.min(now + ARGV[3], leaves))
return soonest(token)
