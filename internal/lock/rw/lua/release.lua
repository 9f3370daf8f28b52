-- Gives up what the token has, the lock or a place in the queue.
-- KEYS: as in the prelude
-- ARGV: token, its fence, 1 if requests of the token may still be on their way, else 0
-- Returns 1 if it had the lock or a place, 0 if neither, -1 if that is because the lock was revoked. A writer whose lease is over
-- still had the lock if no script has run since that would have ended the lease: nobody else has had the lock.
-- Safe to run twice; the second run finds nothing.
local token, had, wrote = ARGV[1], 1, writer == ARGV[1]
expire()
if ARGV[3] == '1' then
  remember(token)
end
if writer == token then
  end_turn()
elseif wrote then
  had = 1
elseif read_until > 0 and redis.call('ZREM', readers, token) == 1 then
  read_readers()
elseif queued and redis.call('ZSCORE', alive, token) then
  leave(token)
else
  had = not_held(ARGV[2])
end
promote()
return had
