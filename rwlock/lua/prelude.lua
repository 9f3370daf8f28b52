-- Shared by the scripts of this folder; each is sent with this text before it, and fields.lua before that. To make all these functions
-- takes longer than most of what they do, so the common case of a script comes in between, if it has one.
--
-- KEYS, the same for every script:
--   lock     hash: writer (its token) and deadline, while a writer holds; fence, the last one given; longest lease
--            anybody asked for, in ms; ticket, the last one given to a waiter, which grows by the microseconds that pass, and by
--            1 if the clock is set back; asked, when that was, in microseconds; revoked, the fence that the last revoke took,
--            and revoker, its id; gone, until when somebody is among the gone; waiter:TOKEN for each waiter: its grace in ms,
--            until when it waits at most, its ticket, and its inbox if it has one, with colons between them; solo, what the ticket
--            was (empty: none) when nobody was queued: whoever queues gets a new one, so as long as they are equal nobody has
--            queued since; kept, until when the hash is there at least, as it has a TTL
--   readers  zset: the tokens that hold for reading, by deadline
--   writers  zset: the tokens that wait to write, by ticket less the microseconds that each had waited before it got one
--   waiting  zset: the tokens that wait to read, by ticket
--   alive    zset: the tokens that wait, by when they are dead without another heartbeat
--   gone     zset: the tokens that have given up and of whose requests some may still be on their way, by when they are forgotten
-- All deadlines are the server's time in ms.
local lock, readers, writers, waiting, alive, gone = unpack(KEYS)

local longest_grace = 3000 -- ms
local memory = 600000 -- ms: how long the last fence, and who is gone, is remembered at least

-- Returns the time in ms, and in microseconds.
local function now_ms()
  local t = redis.call('TIME')
  return t[1] * 1000 + math.floor(t[2] / 1000), t[1] * 1000000 + t[2]
end

local now, micros = now_ms()
local writer, deadline, fence, longest = fields[1], tonumber(fields[2] or 0), tonumber(fields[3] or 0), tonumber(fields[4] or 0)
local kept = tonumber(fields[9] or 0)
local read_until -- when the last reader's lease ends; 0: nobody reads
local queued -- somebody waits
local ended = false -- a writer's turn has ended in this run
local known -- until when somebody held, as far as those who wait could hear before this run
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

local function read_readers()
  read_until = highest(readers, longest > 0 and now + longest or math.huge)
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
  redis.call('ZREM', writers, token)
  redis.call('ZREM', waiting, token)
  left = true
  return waiter
end

local function end_writer()
  redis.call('HDEL', lock, 'writer', 'deadline')
  writer, ended = false, true
end

local function next_fence()
  fence = math.max(fence + 1, micros)
  return whole(fence)
end

local function hold_write(token, till)
  writer, deadline = token, till
  redis.call('HSET', lock, 'writer', token, 'deadline', whole(deadline), 'fence', next_fence())
  keep(lock)
end

local function hold_read(token, till)
  redis.call('ZADD', readers, whole(till), token)
  keep(readers, read_until == 0)
  read_until = math.max(read_until, till)
end

-- A user without the right to publish must not lose the lock: waiters have timers too.
local function wake(inbox, key, body)
  redis.pcall('PUBLISH', inbox, #key .. ':' .. key .. body)
end

-- Grants the lock to all who wait to read.
local function admit()
  local tokens, told = redis.call('ZRANGE', waiting, 0, -1), {}
  if #tokens == 0 then
    return
  end
  for first = 1, #tokens, 1000 do -- more arguments than some thousand do not fit on Lua's stack
    local part, fields, holds = {}, {}, {}
    for i = first, math.min(first + 999, #tokens) do
      part[#part + 1] = tokens[i]
      fields[#fields + 1] = 'waiter:' .. tokens[i]
    end
    for i, waiter in ipairs(redis.call('HMGET', lock, unpack(fields))) do
      local till, inbox = grant_to(waiter)
      read_until = math.max(read_until, till)
      holds[#holds + 1] = whole(till)
      holds[#holds + 1] = part[i]
      if inbox then
        told[inbox] = true
      end
    end
    redis.call('ZADD', readers, unpack(holds))
    redis.call('ZREM', alive, unpack(part))
    redis.call('HDEL', lock, unpack(fields))
  end
  redis.call('DEL', waiting)
  keep(readers)
  local body = (redis.call('HGET', lock, 'ticket') or 0) .. ':' .. whole(fence) -- a lock that was deleted has no tickets
  for inbox in pairs(told) do
    wake(inbox, lock, body)
  end
end

-- Those who wait reckon with the lease that was the last to end when they asked. If what is left ends sooner, and before the
-- next heartbeat, the first writer is told to ask: it hears when that is, and asks again then, which hands on to whoever is next.
local function hasten()
  local till = writer and deadline or read_until
  if not left and till >= known then
    return
  end
  known, left = till, false
  local first = redis.call('ZRANGE', writers, 0, 0)[1]
  local waiter = first and redis.call('HGET', lock, 'waiter:' .. first)
  local grace, inbox = string.match(waiter or '', '^(%d+):%d+:%d+:(.+)$')
  if grace and till - now < grace / 3 then
    wake(inbox, lock .. ':' .. first, '')
  end
end

-- Hands the lock on, if it can be.
local function hand_on()
  if writer then
    return
  end
  if ended or redis.call('ZCARD', writers) == 0 then
    admit()
  end
  local first = read_until == 0 and redis.call('ZRANGE', writers, 0, 0)[1]
  if first then
    local till, inbox, ticket = grant_to(leave(first))
    hold_write(first, till)
    if inbox then
      wake(inbox, lock .. ':' .. first, ticket .. ':' .. whole(fence))
    end
  end
end

local function promote()
  if queued then
    hand_on()
    hasten()
  end
end

-- Reads the lock, ends the leases that have expired, and takes the dead out of the queue.
local function expire()
  if writer and deadline > now + longest then -- the clock was set back
    deadline = now + longest
    redis.call('HSET', lock, 'deadline', whole(deadline))
  end
  read_readers()
  known = writer and deadline or read_until
  if writer and deadline <= now then
    end_writer()
  end
  if read_until > 0 then
    redis.call('ZREMRANGEBYSCORE', readers, '-inf', whole(now))
    read_until = read_until > now and read_until or 0
  end
  queued = highest(alive, now + longest_grace) > 0
  if queued then
    for _, token in ipairs(redis.call('ZRANGEBYSCORE', alive, '-inf', whole(now))) do
      leave(token)
    end
  end
end

-- What every script does first, unless it takes something away: then it hands on when it has.
local function advance()
  expire()
  promote()
end

-- Renews the token's lease, if it has one, and returns how it holds, 'w', 'r' or nil, and until when. That is never sooner
-- than before, whatever the clock and the length.
local function renew(token, length)
  if writer == token then
    deadline = math.max(deadline, lease(length))
    redis.call('HSET', lock, 'deadline', whole(deadline))
    keep(lock)
    return 'w', deadline
  end
  local till = read_until > 0 and redis.call('ZSCORE', readers, token)
  if till then
    till = math.max(tonumber(till), lease(length))
    hold_read(token, till)
    return 'r', till
  end
end

-- Returns in how many ms asking again may change something for a waiter: when the leases of the holders have ended, or, for one
-- that waits to read behind a queue of writers, when the last of these is dead without another heartbeat.
local function soonest(mode)
  local till = writer and deadline or read_until
  local last = mode == 'r' and not writer and redis.call('ZRANGE', writers, -1, -1)[1]
  if last then
    till = math.min(till, tonumber(redis.call('ZSCORE', alive, last) or till))
  end
  return math.max(till - now, 1)
end

-- What to say to a token that does not hold: -1 if the lock was revoked since it got this fence, else 0.
local function not_held(since)
  return tonumber(redis.call('HGET', lock, 'revoked') or 0) > tonumber(since) and -1 or 0
end

-- Returns whether the token has given up before, so that what it asks for now comes late.
local function late(token)
  return now < tonumber(fields[5] or 0) and redis.call('ZSCORE', gone, token)
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
