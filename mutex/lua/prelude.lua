-- Shared by the scripts of this folder; each is sent with this text before it.
--
-- The lock of a name is a hash:
--   token     of the holder: its own id, or that of its owner; empty or absent: the lock is free
--   deadline  server time in ms until which the token holds the lock
--   length    how long before the deadline it was set, in ms
--   fence     of the last acquisition
--   holds     the ids of an owner's holds, with spaces around each; empty or absent: the token is an id
--   inbox     of the holder, to be told when it is revoked
--   last      the id that was released last
--   revoked   the token that was revoked last
--   kept      server time in ms until which the key exists, as it has a TTL
--   ticket    of the last who queued; absent: nobody is in the queue
--   waiter:ID one for each in the queue: until when it counts as alive, its grace in ms, its inbox, its token
-- The queue is a sorted set of ids by ticket.

-- How long a fence is remembered after the lease that it was given to, so that the clock may be set back by as much.
local MEMORY = 600000

local function int(n) return string.format('%.0f', n) end

-- Returns the time in ms, and in microseconds.
local function clock()
  local t = redis.call('TIME')
  return t[1] * 1000 + math.floor(t[2] / 1000), t[1] * 1000000 + t[2]
end

-- Sees to it that the lock is kept for its memory after a lease of so many ms.
local function keep(key, kept, now, length)
  if tonumber(kept or 0) >= now + length + MEMORY then
    return
  end
  local reply = redis.pcall('PEXPIRE', key, int(length + 2 * MEMORY))
  if type(reply) == 'table' then
    redis.call('DEL', key) -- not allowed: no key may be left without a TTL
    return reply
  end
  redis.call('HSET', key, 'kept', int(now + length + 2 * MEMORY))
end

-- Gives the lock to an id. Returns the fence, and an error if Redis refused.
local function give(key, old, last, id, token, inbox, length, now, micros)
  local fence = int(math.max(tonumber(old.fence or 0) + 1, micros))
  local holds = token ~= id and ' ' .. id .. ' ' or ''
  local reply
  if last == '' and holds == '' and (old.holds or '') == '' then
    reply = redis.pcall('HSET', key, 'token', token, 'deadline', int(now + length), 'length', length, 'fence', fence,
      'inbox', inbox)
  else
    reply = redis.pcall('HSET', key, 'token', token, 'deadline', int(now + length), 'length', length, 'fence', fence,
      'inbox', inbox, 'last', last, 'holds', holds)
  end
  if type(reply) == 'table' then
    return nil, reply
  end
  return tonumber(fence), keep(key, old.kept, now, length)
end

-- Gives the lock to the first in the queue that is alive, for its grace, and tells it. Returns its id, or nil.
local function promote(key, queue, old, last, now, micros)
  while true do
    local id = redis.call('ZPOPMIN', queue)[1]
    if not id then
      redis.call('HDEL', key, 'ticket')
      return nil
    end
    local waiter = redis.call('HGET', key, 'waiter:' .. id)
    redis.call('HDEL', key, 'waiter:' .. id)
    if waiter then
      local alive, grace, inbox, token = string.match(waiter, '^(%d+) (%d+) (%S*) (%S+)$')
      if tonumber(alive) > now then
        local fence, err = give(key, old, last, id, token, inbox, tonumber(grace), now, micros)
        if err then
          return nil
        end
        if inbox ~= '' then
          redis.pcall('PUBLISH', inbox, #id .. ':' .. id .. int(fence)) -- not allowed: heartbeats find the grant
        end
        return id, fence
      end
    end
  end
end

local function read(key, id)
  local h = redis.call('HMGET', key, 'token', 'deadline', 'length', 'fence', 'kept', 'ticket', 'holds', 'last',
    'waiter:' .. id)
  return {
    token = h[1], deadline = tonumber(h[2] or 0), length = tonumber(h[3] or 0), fence = h[4], kept = h[5],
    ticket = h[6], holds = h[7], last = h[8], waiter = h[9],
  }
end

-- Returns whether the lock is held by the id: as itself, or as one of the holds of the owner that the token names.
local function holds(lock, id, token)
  return lock.token == token and (token == id or string.find(lock.holds or '', ' ' .. id .. ' ', 1, true) ~= nil)
end

local function leave(key, queue, id)
  redis.call('ZREM', queue, id)
  redis.call('HDEL', key, 'waiter:' .. id)
end
