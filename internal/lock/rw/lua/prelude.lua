-- Shared by the scripts of this folder; each is sent with this text before it, after fields.lua and the prelude of package queue.
-- Creating all these functions takes longer than most of what they do. If a script has a common case, that comes before them.
--
-- KEYS, the same for every script:
--   lock     hash: as in the prelude of package queue; writer (its token) and deadline, while a writer holds; solo, the ticket
--            (empty: none) at a moment when nobody was queued. A caller that queues gets a new ticket, so while solo equals ticket,
--            nobody has queued since
--   readers  zset: the tokens that hold for reading, by deadline
--   writers  zset: the tokens that wait to write, by ticket less the microseconds that each had waited before it got one
--   waiting  zset: the tokens that wait to read, by ticket
--   alive, gone: as in the prelude of package queue
local readers, writers, waiting = KEYS[2], KEYS[3], KEYS[4]

local writer, deadline = fields[8], tonumber(fields[9] or 0)
local read_until -- when the last reader's lease ends; 0: nobody reads
local ended = false -- a writer's turn has ended in this run
local stands = false -- and the lock still names that writer
local second -- the writer who is the first in the queue after the one who was granted the lock; false: nobody is; nil: not known
local known -- until when somebody held, as far as the waiters could know before this run

local function read_readers()
  read_until = highest(readers, longest > 0 and now + longest or math.huge)
end

-- Ends the writer's turn; promote clears the lock's fields of it, unless another writer takes its place.
local function end_turn()
  writer, ended, stands = false, true, true
end

local function clear()
  if stands then
    redis.call('HDEL', lock, 'writer', 'deadline')
    stands = false
  end
end

local function end_writer()
  end_turn()
  clear()
end

local function hold_write(token, till)
  writer, deadline, stands = token, till, false
  redis.call('HSET', lock, 'writer', token, 'deadline', whole(deadline), 'fence', next_fence())
  keep_lock()
end

local function hold_read(token, till)
  redis.call('ZADD', readers, whole(till), token)
  keep(readers, read_until == 0)
  read_until = math.max(read_until, till)
end

-- Grants the lock to all that wait to read.
local function admit()
  local tokens, told = redis.call('ZRANGE', waiting, 0, -1), {}
  if #tokens == 0 then
    return
  end
  clear() -- first: a script that has removed something may add something though memory is full
  for first = 1, #tokens, 1000 do -- Lua's stack has room for some thousand arguments
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

-- Waiters rely on the lease that was the last to end when they asked. If the remaining leases end sooner, and before the next
-- heartbeat, this makes the first writer ask. The reply says when they end. The writer asks again then, and that request hands the
-- lock on to the next in the queue.
local function hasten()
  local till = writer and deadline or read_until
  if not left and till >= known then
    return
  end
  known, left = till, false
  local first = second
  if first == nil then
    first = redis.call('ZRANGE', writers, 0, 0)[1]
  end
  local waiter = first and redis.call('HGET', lock, 'waiter:' .. first)
  local grace, inbox = string.match(waiter or '', '^(%d+):%d+:%d+:(.+)$')
  if grace and till - now < grace / 3 then
    wake(inbox, lock .. ':' .. first, '')
  end
end

-- Hands the lock on, if somebody may have it now.
local function hand_on()
  if writer then
    return
  end
  if ended or redis.call('ZCARD', writers) == 0 then
    admit()
  end
  local queue = read_until == 0 and redis.call('ZRANGE', writers, 0, 1) or {}
  local first = queue[1]
  if first then
    second = queue[2] or false
    local till, inbox, ticket = grant_to(leave(first, writers))
    hold_write(first, till)
    if inbox then
      wake(inbox, lock .. ':' .. first, ticket .. ':' .. whole(fence))
    end
  end
end

local function promote()
  second = nil
  if queued then
    hand_on()
    hasten()
  end
  clear()
end

-- Reads the lock, ends the leases that have expired, and removes the dead from the queue.
local function expire()
  if writer and deadline > now + longest then -- the clock was set back
    deadline = now + longest
    although_full()
    redis.call('HSET', lock, 'deadline', whole(deadline))
  end
  read_readers()
  known = writer and deadline or read_until
  if writer and deadline <= now then
    end_turn()
  end
  if read_until > 0 then
    redis.call('ZREMRANGEBYSCORE', readers, '-inf', whole(now))
    read_until = read_until > now and read_until or 0
  end
  bury()
end

-- Every script calls it first, except those that take something away: they hand on after that.
local function advance()
  expire()
  promote()
end

-- Renews the token's lease, if it has one. Returns how it holds, 'w', 'r' or nil, and until when: never sooner than before,
-- whatever the clock and the length.
local function renew(token, length)
  if writer == token then
    although_full()
    deadline = math.max(deadline, lease(length))
    redis.call('HSET', lock, 'deadline', whole(deadline))
    keep(lock)
    return 'w', deadline
  end
  local till = read_until > 0 and redis.call('ZSCORE', readers, token)
  if till then
    although_full()
    till = math.max(tonumber(till), lease(length))
    hold_read(token, till)
    return 'r', till
  end
end

-- Returns in how many ms asking again may change something for a waiter: when the leases of the holders have ended. A reader behind
-- a queue of writers asks when the last of these is dead without another heartbeat, if that is sooner.
local function soonest(mode)
  local till = writer and deadline or read_until
  local last = mode == 'r' and not writer and redis.call('ZRANGE', writers, -1, -1)[1]
  if last then
    till = math.min(till, tonumber(redis.call('ZSCORE', alive, last) or till))
  end
  return math.max(till - now, 1)
end
