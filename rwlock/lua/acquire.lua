-- Takes the lock, or a place in the queue, or says how things stand.
-- KEYS: as in the prelude
-- ARGV: token, mode ('w' or 'r'), lease ms, grace in ms (0: do not queue), ms for which it waits at most, inbox ('' for none),
--       when it came by this server's clock in microseconds (0: now)
-- Returns the fence if the token holds the lock | {'queued', ms until it may be worth asking again, ticket, time in microseconds}
--       | {'busy', ms until the leases of the holders end}
-- Safe to run twice: its own token means held, or queued; who has given up with a request on its way gets nothing.
local token, mode, length = ARGV[1], ARGV[2], tonumber(ARGV[3])
advance()
if late(token) then
  return {'busy', 0}
end

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
  return fence
end

local patience = tonumber(ARGV[5])
if ARGV[4] == '0' or patience <= 0 then
  return {'busy', (writer and deadline or read_until) - now}
end

local queue = mode == 'w' and writers or waiting
local ticket = redis.call('ZSCORE', queue, token) and ticket_of(token)
if not ticket then
  local last, came = tonumber(fields[6] or 0) + math.max(micros - (fields[7] or 0), 1), tonumber(ARGV[7])
  ticket = whole(last)
  redis.call('ZADD', queue, whole(came > 0 and last - math.max(micros - came, 0) or last), token)
  redis.call('HSET', lock, 'ticket', ticket, 'asked', whole(micros))
end
redis.call('ZADD', alive, whole(now + math.min(ARGV[4], patience)), token)
redis.call('HSET', lock, 'waiter:' .. token, ARGV[4] .. ':' .. whole(now + patience) .. ':' .. ticket .. ':' .. ARGV[6])
keep(lock)
keep(queue)
keep(alive)
return {'queued', soonest(mode), tonumber(ticket), micros}
