-- Shared by the scripts of this folder; each is sent with this text, and fields.lua, before it.
--
-- The lock of a name is a hash:
--   token     of the holder: its own id, or that of its owner; empty: the lock is free, and nobody is in the queue;
--             absent: it is free
--   fence     of the last acquisition
--   lease     server time when the lease of the token began, in seconds and microseconds, its length in ms, the holder's
--             inbox
--   kept      server time in ms until which the hash exists at least, by its TTL
--   holds     the ids of an owner's holds, with a space after each; empty or absent: the token is an id
--   ticket    of the last that queued; absent: nobody is in the queue. It grows by the microseconds that pass, and by 1 if the clock
--             is set back
--   asked     server time in microseconds when that ticket was given
--   waiter:ID one for each id in the queue: until when it counts as alive, its grace in ms, its inbox, its token
--   last      the id that gave up the lock last
--   revoked   the token that was revoked last
--   gone      server time in ms until which somebody is among the gone; absent: nobody is
-- The queue is a sorted set of ids by ticket, less the microseconds that each had waited before it got one. The gone are a sorted
-- set of ids that have given up while requests of theirs may still be on their way, by when they are forgotten.

-- How many ms a fence is remembered after its lease: the clock may be set back by as much. The gone are remembered for as long: the
-- network may be late by as much.
local MEMORY = 600000

local time = redis.call('TIME')
local now, micros = time[1] * 1000 + math.floor(time[2] / 1000), time[1] * 1000000 + time[2]

-- The lock.
local s = {token = fields[1] or '', fence = fields[2] or 0, lease = fields[3], kept = fields[4] or 0,
  ticket = tonumber(fields[5] or 0), holds = fields[6] or '', gone = tonumber(fields[7] or 0),
  asked = tonumber(fields[8] or 0)}

local function whole(n) return string.format('%.0f', n) end

-- Returns the deadline, the length and the inbox of the lease; the deadline is 0 if there was none.
local function parse(lease)
  local seconds, more, length, inbox = string.match(lease or '0 0 0 ', '^(%d+) (%d+) (%d+) (%S*)$')
  return seconds * 1000 + math.floor(more / 1000) + length, tonumber(length), inbox
end

-- Returns a lease that begins now.
local function lease(length, inbox)
  return time[1] .. ' ' .. time[2] .. ' ' .. length .. ' ' .. inbox
end

local ttl -- of the hash, in ms, which settle sets
local must = false -- the hash may have none as yet

-- Makes the hash outlive the lease by MEMORY.
local function keep(key, length)
  if tonumber(s.kept) < now + length + MEMORY then
    ttl, must = length + 2 * MEMORY, true
    s.kept = now + ttl
    redis.call('HSET', key, 'kept', s.kept)
  end
end

-- Ends a script, whether all went well or not. PEXPIRE is the last command on a key: if the clock is set back by more while a script
-- runs, Redis 7.0 takes the key for expired until the script ends, and what follows would find it empty, and leave it without a TTL.
local function settle(well, reply)
  local refused = ttl and redis.pcall('PEXPIRE', KEYS[1], ttl)
  if type(refused) == 'table' then
    if must then
      redis.call('DEL', KEYS[1]) -- not allowed: no key may be left without a TTL
    end
    return refused
  end
  if not well then
    if string.find(tostring(reply), '^%u+ ') then
      return {err = reply} -- what Redis said, before which error puts ERR
    end
    error(reply, 0)
  end
  return reply
end

-- Lets a script write though memory is full: Redis refuses only what is the first write of a script. For those that keep, or give up,
-- what they have.
local function although_full(key)
  redis.call('HDEL', key, '')
end

-- Sets the holder's lease, and repairs the key's TTL if somebody else has changed it.
local function extend(key, inbox, length)
  if s.holds ~= '' then -- one of an owner's holds: another may have a longer lease, and trusts it
    local deadline, was = parse(s.lease)
    length = math.max(length, math.min(deadline - now, was))
  end
  ttl = length + 2 * MEMORY
  s.kept = now + ttl
  although_full(key)
  redis.call('HSET', key, 'lease', lease(length, inbox), 'kept', s.kept)
end

-- Gives the lock to an id. If another id has just given it up, s.last is that. Returns the fence, or nil and an error if Redis refuses.
local function give(key, id, token, inbox, length)
  local fence = math.max(s.fence + 1, micros)
  local text, from, reply = string.format('%.0f', fence), lease(length, inbox)
  if token == id and s.holds == '' and not s.last then
    reply = redis.pcall('HSET', key, 'token', token, 'fence', text, 'lease', from)
  else
    reply = redis.pcall('HSET', key, 'token', token, 'fence', text, 'lease', from,
      'holds', token == id and '' or id .. ' ', 'last', s.last or '')
  end
  if type(reply) == 'table' then
    return nil, reply
  end
  keep(key, length)
  return fence
end

-- Has all waiters live for their grace from now at most: they have queued before the clock was set back.
local function set_back(key)
  local all = redis.pcall('HGETALL', key) -- a user who may not waits for longer
  for i = 1, #all, 2 do
    local alive, grace, rest = string.match(all[i + 1], '^(%d+) (%d+)( .*)$')
    if string.sub(all[i], 1, 7) == 'waiter:' and alive and tonumber(alive) > now + grace then
      redis.call('HSET', key, all[i], whole(now + grace) .. ' ' .. grace .. rest)
    end
  end
end

-- Gives the lock to the first in the queue that is alive, for its grace, and notifies it. Returns its id and the fence, or nil
-- if there is none.
local function promote(key, queue)
  while true do
    local id = redis.call('ZPOPMIN', queue)[1]
    if not id then
      redis.call('HDEL', key, 'ticket', 'asked')
      return nil
    end
    local waiter = redis.call('HGET', key, 'waiter:' .. id)
    redis.call('HDEL', key, 'waiter:' .. id)
    local alive, grace, inbox, token = string.match(waiter or '', '^(%d+) (%d+) (%S*) (%S+)$')
    if alive and tonumber(alive) > now then
      if tonumber(alive) > now + grace then
        set_back(key)
      end
      local fence, err = give(key, id, token, inbox, tonumber(grace))
      if not err and inbox ~= '' then
        publish(inbox, #id .. ':' .. id .. string.format('%.0f', fence))
      end
      return id, fence, err
    end
  end
end

-- Returns whether the id has the lock: as itself, or as one of the holds of the owner that the token names.
local function holds(id, token)
  return s.token == token and (token == id or string.find(' ' .. s.holds, ' ' .. id .. ' ', 1, true) ~= nil)
end

-- Removes the id from the queue, and returns whether it was there.
local function leave(key, queue, id)
  return redis.call('HDEL', key, 'waiter:' .. id) == 1 and redis.call('ZREM', queue, id) == 1
end

-- Returns whether the id has given up, so that this request of it comes late.
local function late(id)
  return s.gone > now and redis.call('ZSCORE', KEYS[3], id)
end

-- Remembers that the id has given up. If Redis refuses, a late request costs one lease.
local function remember(key, gone, id)
  redis.call('ZREMRANGEBYSCORE', gone, '-inf', now)
  if type(redis.pcall('ZADD', gone, now + MEMORY, id)) == 'table' then
    return
  end
  if type(redis.pcall('PEXPIRE', gone, 2 * MEMORY)) == 'table' then
    redis.call('DEL', gone) -- not allowed: no key may be left without a TTL
    return
  end
  s.gone = now + MEMORY
  redis.pcall('HSET', key, 'gone', s.gone)
  keep(key, 0)
end
