-- Takes a permit, or a place in the queue, or reports that all permits are taken.
-- KEYS: as in the prelude
-- ARGV: token, how many permits there are, lease ms, grace in ms (0: do not queue), how many ms it waits at most, inbox ('' for none),
--       when it came by this server's clock in microseconds (0: now)
-- Returns the fence if the token has a permit | {'queued', ms until it may be worth asking again, ticket, time in microseconds}
--       | {'busy', ms until the first of the leases ends}
-- Safe to run twice: its own token means held, or queued; a token that has given up gets nothing.
local token, permits, length = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
advance()
if late(token) then
  return {'busy', 0}
end
if renew(token, length) then
  return fence
end
if held < permits and (not queued or redis.call('ZCARD', queue) == 0) then
  hold(token, lease(length))
  return fence
end

local patience = tonumber(ARGV[5])
if ARGV[4] == '0' or patience <= 0 then
  return {'busy', ends(0)}
end
lease(length) -- notes how long leases are: in an open slot of a cluster, a renewal cannot
local ticket = enqueue(queue, token, ARGV[4], patience, tonumber(ARGV[7]), ARGV[2] .. ':' .. ARGV[6])
if held < permits and redis.call('ZRANGE', queue, 0, 0)[1] == token then -- it waited before it asked, and knows of more permits than the next
  leave(token)
  hold(token, lease(length))
  return fence
end
return {'queued', soonest(token), tonumber(ticket), micros}
