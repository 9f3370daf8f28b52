-- Takes the lock, or a place in the queue, or reports that the lock is busy.
-- KEYS: as in the prelude
-- ARGV: token, mode ('w' or 'r'), lease ms, grace in ms (0: do not queue), how many ms it waits at most, inbox ('' for none),
--       when it came by this server's clock in microseconds (0: now)
-- Returns the fence if the token holds the lock | {'queued', ms until it may be worth asking again, ticket, time in microseconds}
--       | {'busy', ms until the leases of the holders end}
-- Safe to run twice: its own token means held, or queued; a token that has given up gets nothing.
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

lease(length) -- notes how long leases are: in an open slot of a cluster, a renewal cannot
local queue = mode == 'w' and writers or waiting
local ticket = enqueue(queue, token, ARGV[4], patience, tonumber(ARGV[7]), ARGV[6])
return {'queued', soonest(mode), tonumber(ticket), micros}
