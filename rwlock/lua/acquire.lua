-- Takes the lock, or a place in the queue, or says how things stand.
-- KEYS: as in the prelude
-- ARGV: token, mode ('w' or 'r'), lease ms, grace in ms (0: do not queue), inbox ('' for none)
-- Returns {'held', fence} | {'queued', ms, ticket} | {'busy', ms}; ms until the leases of the holders end
-- Safe to run twice: its own token means held, or queued.
local token, mode, length = ARGV[1], ARGV[2], tonumber(ARGV[3])
advance()

local held = renew(token, length)
if not held and not writer then
  if mode == 'r' and (not queued or redis.call('ZCARD', writers) == 0) then
    hold_read(token, lease(length))
    held = true
  elseif mode == 'w' and read_until == 0 then -- nobody holds, so nobody is queued
    hold_write(token, lease(length))
    held = true
  end
end
if held then
  return {'held', fence}
end

local left = (writer and deadline or read_until) - now
if ARGV[4] == '0' then
  return {'busy', left}
end

local queue = mode == 'w' and writers or waiting
local ticket = redis.call('ZSCORE', queue, token)
if not ticket then
  ticket = redis.call('HINCRBY', lock, 'ticket', 1)
  redis.call('ZADD', queue, ticket, token)
end
redis.call('ZADD', alive, whole(now + ARGV[4]), token)
redis.call('HSET', lock, 'waiter:' .. token, ARGV[4] .. ':' .. ARGV[5])
keep(lock)
keep(queue)
keep(alive)
return {'queued', left, tonumber(ticket)}
