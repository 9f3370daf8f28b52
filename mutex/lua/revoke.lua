-- Takes the lock away from its holder, notifies the holder, and gives the lock to the next in the queue.
-- KEYS: lock, queue
-- ARGV: the key that Lockers listen to
-- Returns 1, or 0 if nobody held it.
-- Safe to run twice, but a second run may revoke the next holder.
local key, queue = KEYS[1], KEYS[2]

local deadline, _, inbox = parse(s.lease)
if s.token == '' or deadline <= now then
  return 0
end
although_full(key)
redis.call('HSET', key, 'token', '', 'holds', '', 'revoked', s.token)
if inbox ~= '' then
  publish(inbox, #ARGV[1] .. ':' .. ARGV[1] .. s.token)
end
s.holds = ''
if s.ticket ~= 0 then
  promote(key, queue)
end
return 1
