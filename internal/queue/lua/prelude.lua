-- Shared by the scripts of locks that a queue in Redis hands out, whose holders and waiters have leases of their own: rwlock and
-- semaphore. Each script is sent with its folder's fields.lua, this text and its folder's prelude.lua before it.
--
-- KEYS:
--   the first   the lock, a hash: fence, the last one given; longest lease anybody asked for, in ms; ticket, the last one given to a
--               waiter, which grows by the microseconds that pass, and by 1 if the clock is set back; asked, when that was, in
--               microseconds; revoked, the fence that the last revoke took, and revoker, its id; gone, until when somebody is among
--               the gone; waiter:TOKEN for each waiter: its grace in ms, until when it waits at most, its ticket, and its inbox if it
--               has one, with colons between them; kept, until when the hash is there at least, as it has a TTL
--   the second  of those that hold
--   then        zsets of those that wait, one or two: the tokens by their tickets
--   alive       the one before the last, a zset: the tokens that wait, by when they are dead without another heartbeat
--   gone        the last, a zset: the tokens that have given up and of whose requests some may still be on their way, by when they
--               are forgotten
-- All deadlines are the server's time in ms.
local lock, alive, gone = KEYS[1], KEYS[#KEYS - 1], KEYS[#KEYS]

local longest_grace = 3000 -- ms
local memory = 600000 -- ms: how long the last fence, and who is gone, is remembered at least

-- Returns the time in ms, and in microseconds.
local function now_ms()
  local t = redis.call('TIME')
  return t[1] * 1000 + math.floor(t[2] / 1000), t[1] * 1000000 + t[2]
end

local now, micros = now_ms()
local fence, longest = tonumber(fields[1] or 0), tonumber(fields[2] or 0)
local kept = tonumber(fields[6] or 0)
local queued -- somebody waits
local left = false -- somebody has left the queue in this run

local function whole(n) return string.format('%.0f', n) end

-- No key may be left without a TTL, nor with one that ends before what it is about. A new one has none.
local function keep(key, new)
  local least, left = memory + longest, new and -1 or redis.call('PTTL', key)
  if left < least then
    left = 2 * least
    redis.call('PEXPIRE', key, whole(left))
  end
  if key == lock and kept < now + least then
    kept = now + left
    redis.call('HSET', lock, 'kept', whole(kept))
  end
end

-- Returns the deadline of a lease that begins now.
local function lease(length)
  if length > longest then
    longest = length
    redis.call('HSET', lock, 'longest', whole(length))
    keep(lock)
  end
  return now + length
end

-- The clock was set back: nobody stays for longer than anybody may.
local function cut(key, limit)
  for _, token in ipairs(redis.call('ZRANGEBYSCORE', key, '(' .. whole(limit), '+inf')) do
    redis.call('ZADD', key, whole(limit), token)
  end
end

-- Returns the highest score of a sorted set, not above a limit; 0 if it is empty.
local function highest(key, limit)
  local score = tonumber(redis.call('ZREVRANGE', key, 0, 0, 'WITHSCORES')[2] or 0)
  if score > limit then
    cut(key, limit)
    return limit
  end
  return score
end

-- A waiter's grace is how long it lives without a heartbeat, and how long it holds what it is granted unless it confirms it.
-- Returns the deadline of a grant, the inbox to tell, or nil, and the ticket.
local function grant_to(waiter)
  local grace, ticket, inbox = string.match(waiter or '', '^(%d+):%d+:(%d+):(.*)$')
  return lease(tonumber(grace or 0)), inbox ~= '' and inbox or nil, ticket
end

-- Returns the ticket of a waiter, and until when it waits at most, if it is known.
local function ticket_of(token)
  local leaves, ticket = string.match(redis.call('HGET', lock, 'waiter:' .. token) or '', '^%d+:(%d+):(%d+):')
  return ticket, leaves
end

-- Takes a waiter out of the queue, and returns what is known of it.
local function leave(token)
  local field = 'waiter:' .. token
  local waiter = redis.call('HGET', lock, field)
  redis.call('HDEL', lock, field)
  redis.call('ZREM', alive, token)
  for i = 3, #KEYS - 2 do
    redis.call('ZREM', KEYS[i], token)
  end
  left = true
  return waiter
end

local function next_fence()
  fence = math.max(fence + 1, micros)
  return whole(fence)
end

-- A user without the right to publish must not lose the lock: waiters have timers too.
local function wake(inbox, key, body)
  redis.pcall('PUBLISH', inbox, #key .. ':' .. key .. body)
end

-- Takes the dead out of the queue, and finds out whether anybody waits.
local function bury()
  queued = highest(alive, now + longest_grace) > 0
  if queued then
    for _, token in ipairs(redis.call('ZRANGEBYSCORE', alive, '-inf', whole(now))) do
      leave(token)
    end
  end
end

-- Notes until when a waiter lives without another heartbeat.
local function stay(queue, token, till)
  redis.call('ZADD', alive, whole(till), token)
  keep(lock)
  keep(queue)
  keep(alive)
end

-- Gives the token a place in the queue, or finds it there, for no longer than its patience in ms. It came at that time of this
-- server's clock, in microseconds (0: now). Returns its ticket.
local function enqueue(queue, token, grace, patience, came, inbox)
  local ticket = redis.call('ZSCORE', queue, token) and ticket_of(token)
  if not ticket then
    local last = tonumber(fields[4] or 0) + math.max(micros - (fields[5] or 0), 1)
    ticket = whole(last)
    redis.call('ZADD', queue, whole(came > 0 and last - math.max(micros - came, 0) or last), token)
    redis.call('HSET', lock, 'ticket', ticket, 'asked', whole(micros))
  end
  redis.call('HSET', lock, 'waiter:' .. token, grace .. ':' .. whole(now + patience) .. ':' .. ticket .. ':' .. inbox)
  stay(queue, token, now + math.min(grace, patience))
  return ticket
end

-- What to say to a token that does not hold: -1 if the lock was revoked since it got this fence, else 0.
local function not_held(since)
  return tonumber(redis.call('HGET', lock, 'revoked') or 0) > tonumber(since) and -1 or 0
end

-- Returns whether the token has given up before, so that what it asks for now comes late.
local function late(token)
  return now < tonumber(fields[3] or 0) and redis.call('ZSCORE', gone, token)
end

-- Remembers that the token has given up. If Redis refuses, a request that comes late costs one lease.
local function remember(token)
  redis.call('ZREMRANGEBYSCORE', gone, '-inf', whole(now))
  if type(redis.pcall('ZADD', gone, whole(now + memory), token)) == 'table' then
    return
  end
  if type(redis.pcall('HSET', lock, 'gone', whole(now + memory))) ~= 'table' then
    keep(lock)
  end
  keep(gone)
end
