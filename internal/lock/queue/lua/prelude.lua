-- Shared by the scripts of rwlock and semaphore. A queue in Redis hands these locks out, and each holder and waiter has a lease of
-- its own. Each script is sent with its folder's fields.lua, this text and its folder's prelude.lua before it.
--
-- KEYS:
--   the first   the lock, a hash:
--                 fence         the last one given
--                 longest       the longest lease that anybody has asked for, in ms
--                 ticket        the last one given to a waiter; it grows by the microseconds that pass, and by 1 if the clock is set back
--                 asked         when that ticket was given, in microseconds
--                 revoked       the fence that the last revoke took
--                 revoker       the id of that revoke
--                 gone          until when somebody is among the gone
--                 waiter:TOKEN  one per waiter: its grace in ms, when it stops waiting at the latest, its ticket, and its inbox if it has
--                               one, with colons between them
--                 kept          until when the hash exists at least, by its TTL
--                 grace         the longest grace of those that wait, in ms
--   the second  those that hold
--   then        one or two zsets of those that wait: the tokens by their tickets
--   alive       the one before the last, a zset: the tokens that wait, by when they count as dead without another heartbeat
--   gone        the last, a zset: tokens that have given up while requests of theirs may still be on their way, by when they are
--               forgotten
-- All deadlines are the server's time in ms.
local lock, alive, gone = KEYS[1], KEYS[#KEYS - 1], KEYS[#KEYS]

local longest_grace = 3000 -- ms
local memory = 600000 -- ms: for at least this long, the last fence and the gone are remembered

-- Returns the time in ms, and in microseconds.
local function now_ms()
  local t = redis.call('TIME')
  return t[1] * 1000 + math.floor(t[2] / 1000), t[1] * 1000000 + t[2]
end

local now, micros = now_ms()
local fence, longest = tonumber(fields[1] or 0), tonumber(fields[2] or 0)
local kept, grace = tonumber(fields[6] or 0), tonumber(fields[7] or longest_grace)
local queued -- somebody waits
local left = false -- somebody has left the queue in this run
local ttls = {} -- in ms, by key, which settle sets

local function whole(n) return string.format('%.0f', n) end

-- Lets a script write though memory is full: Redis refuses only what is the first write of a script. For those that keep, or give up,
-- what they have.
local function although_full()
  redis.call('HDEL', lock, '')
end

-- Has settle give a key a TTL that ends no sooner than what the key is about. No key may be left without one; a new key has none.
local function keep(key, new)
  local least, left = memory + longest, ttls[key] or (new and -1 or redis.call('PTTL', key))
  if left < least then
    left = 2 * least
    ttls[key] = left
  end
  if key == lock and kept < now + least then
    kept = now + left
    redis.call('HSET', lock, 'kept', whole(kept))
  end
end

-- The same for the lock, if what it says of its TTL is not enough.
local function keep_lock()
  if kept < now + memory + longest then
    keep(lock)
  end
end

-- Ends a script, whether all went well or not. PEXPIRE is the last command on a key: if the clock is set back by more while a script
-- runs, Redis 7.0 takes the key for expired until the script ends, and what follows would find it empty, and leave it without a TTL.
local function settle(well, reply)
  for key, ttl in pairs(ttls) do
    redis.call('PEXPIRE', key, whole(ttl))
  end
  if not well then
    if string.find(tostring(reply), '^%u+ ') then
      return {err = reply} -- what Redis said, before which error puts ERR
    end
    error(reply, 0)
  end
  return reply
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

-- Lowers the deadlines above the limit, which exist only if the clock was set back.
local function cut(key, limit)
  although_full()
  for _, token in ipairs(redis.call('ZRANGEBYSCORE', key, '(' .. whole(limit), '+inf')) do
    redis.call('ZADD', key, whole(limit), token)
  end
end

-- Returns the highest score of a sorted set, at most the limit; 0 if the set is empty.
local function highest(key, limit)
  local score = tonumber(redis.call('ZREVRANGE', key, 0, 0, 'WITHSCORES')[2] or 0)
  if score > limit then
    cut(key, limit)
    return limit
  end
  return score
end

-- A waiter's grace is how long it lives without a heartbeat, and how long it holds a grant that it does not confirm.
-- Returns the deadline of a grant, the inbox to notify or nil, and the ticket.
local function grant_to(waiter)
  local grace, ticket, inbox = string.match(waiter or '', '^(%d+):%d+:(%d+):(.*)$')
  return lease(tonumber(grace or 0)), inbox ~= '' and inbox or nil, ticket
end

-- Returns a waiter's ticket, and when it stops waiting at the latest; nil if the waiter is not known.
local function ticket_of(token)
  local leaves, ticket = string.match(redis.call('HGET', lock, 'waiter:' .. token) or '', '^%d+:(%d+):(%d+):')
  return ticket, leaves
end

-- Removes a waiter from its queue (nil: from any), and returns its field of the lock.
local function leave(token, queue)
  local field = 'waiter:' .. token
  local waiter = redis.call('HGET', lock, field)
  redis.call('HDEL', lock, field)
  redis.call('ZREM', alive, token)
  for i = 3, #KEYS - 2 do
    if not queue or queue == KEYS[i] then
      redis.call('ZREM', KEYS[i], token)
    end
  end
  left = true
  return waiter
end

local function next_fence()
  fence = math.max(fence + 1, micros)
  return whole(fence)
end

-- If the user may not publish, the lock is handed on all the same: waiters have timers too.
local function wake(inbox, key, body)
  publish(inbox, #key .. ':' .. key .. body)
end

-- Removes the dead from the queue, and finds out whether anybody waits.
local function bury()
  queued = highest(alive, now + grace) > 0
  if queued then
    for _, token in ipairs(redis.call('ZRANGEBYSCORE', alive, '-inf', whole(now))) do
      leave(token)
    end
  end
end

-- Notes until when a waiter lives without another heartbeat. The first of all waiters makes the keys.
local function stay(queue, token, till, first)
  redis.call('ZADD', alive, whole(till), token)
  keep_lock()
  keep(queue, first)
  keep(alive, first)
end

-- Gives the token a place in the queue, or finds the one that it has. It lives that many ms without a heartbeat, waits for its patience in ms,
-- and came at that time of this server's clock in microseconds (0: now). Returns its ticket.
local function enqueue(queue, token, lives, patience, came, inbox)
  local last = tonumber(fields[4] or 0) + math.max(micros - (fields[5] or 0), 1)
  local place, ticket = whole(came > 0 and last - math.max(micros - came, 0) or last), nil
  if redis.call('ZADD', queue, 'NX', place, token) == 0 then
    ticket = ticket_of(token)
    if not ticket then -- the lock was deleted, and the queue was not
      redis.call('ZADD', queue, place, token)
    end
  end
  grace = math.max(tonumber(lives), queued and grace or 0)
  local since = lives .. ':' .. whole(now + patience) .. ':' .. (ticket or whole(last)) .. ':' .. inbox
  if ticket then
    redis.call('HSET', lock, 'waiter:' .. token, since, 'grace', grace)
  else
    ticket = whole(last)
    redis.call('HSET', lock, 'waiter:' .. token, since, 'grace', grace, 'ticket', ticket, 'asked', whole(micros))
  end
  stay(queue, token, now + math.min(lives, patience), not queued)
  return ticket
end

-- Returns the answer to a token that does not hold the lock: -1 if the lock was revoked since it got this fence, else 0.
local function not_held(since)
  return tonumber(redis.call('HGET', lock, 'revoked') or 0) > tonumber(since) and -1 or 0
end

-- Returns whether the token has given up, so that this request of it comes late.
local function late(token)
  return now < tonumber(fields[3] or 0) and redis.call('ZSCORE', gone, token)
end

-- Remembers that the token has given up. If Redis refuses, a late request costs one lease.
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
