-- Gives up what the token has, a permit or a place in the queue.
-- KEYS: as in the prelude
-- ARGV: token, the fence it was granted with, 1 if requests of the token may still be on their way, else 0
-- Returns 1 if it had a permit or a place, 0 if neither, -1 if that is because it was revoked. A token whose lease is over still had
-- its permit if no script has run since that would have ended the lease: nobody else has had the permit.
-- Safe to run twice; the second run finds nothing.
local token = ARGV[1]
local had = redis.call('ZREM', holders, token)
expire()
if ARGV[3] == '1' then
  remember(token)
end
if had == 0 and queued and redis.call('ZSCORE', alive, token) then
  leave(token)
  had = 1
elseif had == 0 then
  had = not_held(ARGV[2])
end
hand_on()
return had
