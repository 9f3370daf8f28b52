-- Shared by the scripts of this folder; each is sent with this text before it.
--
-- The last ten KEYS of a script that calls forget are the leases, and then the values, of all version slots; see keys.go.
--
-- The lease of a key is a hash:
--   token       of the load that holds it; absent when nobody does
--   deadline    server time in ms until which the token holds the lease or, without a token, a failed load is remembered
--   length      from when the deadline was set until the deadline, in ms
--   generation  of the hash: the token of the load that created it, and the time. A load that finds its generation knows that
--               nothing was stored or invalidated since it acquired the lease, because both delete the hash
--   holder      when the token acquired it, by the server's clock in ms, and on which instance
--   failures, failed   how often in a row loads failed, and the token of the last one that did
--   inbox:ADDRESS   one field per process that waits
--   polled      there, if a process waits that gets no messages and asks again
--   until       there, if intents stood on the key at some time since the generation was made; see until.lua
--   message     about the end of the last generation, whose load stored nothing, if processes waited for it; for some seconds
-- The text of a failure is a string beside it, at LEASE:error, until the deadline: errors may name what is not to stay in Redis.
--
-- The intent of a key is a hash that is there while somebody updates it:
--   writer:TOKEN    "DEADLINE LENGTH": server time in ms until which the writer is believed to be alive, and the ms from when
--                   that was set until then; of several writers, all count
--   holder:TOKEN    when the writer began, and on which instance, as in a lease
--   inbox:ADDRESS   as above

-- The generation in messages about the end of an update.
local WRITING = 'writing'

-- Returns the time in ms, and in microseconds.
local function now_ms()
  local t = redis.call('TIME')
  return t[1] * 1000 + math.floor(t[2] / 1000), t[1] * 1000000 + t[2]
end

-- Returns a lease's fields and the addresses that wait for it, from the reply to HGETALL. A key of another type is no lease.
local function parse_lease(flat)
  local lease, inboxes = {}, {}
  for i = 1, #flat, 2 do
    if string.sub(flat[i], 1, 6) == 'inbox:' then
      inboxes[#inboxes + 1] = string.sub(flat[i], 7)
    else
      lease[flat[i]] = flat[i + 1]
    end
  end
  return lease, inboxes
end

local function read_lease(key)
  return parse_lease(redis.pcall('HGETALL', key))
end

-- Wakes those that wait. If the user may not publish, the fill counts all the same: waiters have timers too.
local function wake(key, inboxes, what, generation, more)
  local message = inboxes[1] and #key .. ':' .. key .. what .. generation .. (more or '')
  for _, inbox in ipairs(inboxes) do
    publish(inbox, message)
  end
end

-- Returns the leases at the keys: for each, its key, its generation and the addresses that wait for it. left is how many keys exist.
local function leases_at(keys, left)
  local there = {}
  for _, key in ipairs(keys) do
    if left == 0 then
      break
    end
    local flat = redis.pcall('HGETALL', key)
    local lease, inboxes = parse_lease(flat)
    if lease.generation then
      there[#there + 1] = {key, lease.generation, inboxes}
    end
    if #flat > 0 and type(left) == 'number' then -- else Redis did not say how many there are: look at all
      left = left - 1
    end
  end
  return there
end

-- Removes the values and leases of all version slots, except the value at the key kept. Returns how many there were. Without a channel, local
-- tiers are not notified.
local function forget(channel, notice, kept)
  local gone, leases, ended = {unpack(KEYS, #KEYS - 4)}, {unpack(KEYS, #KEYS - 9, #KEYS - 5)}, {}
  local loads = redis.pcall('EXISTS', unpack(leases))
  if loads ~= 0 then
    ended = leases_at(leases, loads)
    for i, lease in ipairs(leases) do
      gone[5 + i] = lease
    end
  end
  for i = 1, kept and 5 or 0 do
    if gone[i] == kept then
      table.remove(gone, i)
      break
    end
  end
  local removed = redis.call('DEL', unpack(gone))
  for _, lease in ipairs(ended) do
    wake(lease[1], lease[3], 'g', lease[2])
  end
  if channel then
    publish(channel, notice)
  end
  return removed
end

-- Wakes those that wait for the end of an update. Whatever their version, they all watch the lease without a version, which is the first.
local function wake_readers(inboxes)
  wake(KEYS[#KEYS - 9], inboxes, 'g', WRITING)
end

-- Returns how long the intent stands, in ms, the addresses that wait for its end, how many writers there are, and the holder that is believed to
-- be alive for longest. A key of another type is no intent.
local function read_intent(key, now)
  local left, inboxes, writers, holders, last = 0, {}, 0, {}, ''
  local flat = redis.pcall('HGETALL', key)
  for i = 1, #flat, 2 do
    local deadline, length = string.match(flat[i + 1], '^(%d+) (%d+)$')
    if string.sub(flat[i], 1, 6) == 'inbox:' then
      inboxes[#inboxes + 1] = string.sub(flat[i], 7)
    end
    if string.sub(flat[i], 1, 7) == 'holder:' then
      holders[string.sub(flat[i], 8)] = flat[i + 1]
    end
    local before = left
    if deadline and deadline - now > tonumber(length) then -- the clock was set back: the length counts from now
      redis.pcall('HSET', key, flat[i], string.format('%.0f %s', now + length, length))
      left = math.max(left, tonumber(length))
    else
      left = math.max(left, (deadline or now) - now)
    end
    if string.sub(flat[i], 1, 7) == 'writer:' then
      writers, last = writers + 1, left > before and string.sub(flat[i], 8) or last
    end
  end
  return left, inboxes, writers, holders[last]
end

-- Forgets the writers whose intents have expired: what they wrote, they wrote before now.
local function drop_expired(key, now)
  local flat = redis.pcall('HGETALL', key)
  for i = 1, #flat, 2 do
    local deadline = string.match(flat[i + 1], '^(%d+) %d+$')
    if deadline and deadline - now < 0 then
      redis.call('HDEL', key, flat[i], 'holder:' .. string.sub(flat[i], 8))
    end
  end
end

-- Makes the writer's intent stand for that many ms from now. The instance is given for a new writer only. Returns HSET's reply.
local function set_intent(key, token, ms, instance)
  local now = now_ms()
  local stands = string.format('%.0f %s', now + ms, ms)
  if not instance then
    return redis.pcall('HSET', key, 'writer:' .. token, stands)
  end
  return redis.pcall('HSET', key, 'writer:' .. token, stands, 'holder:' .. token, now .. ' ' .. instance)
end

-- Makes the key last for at least that many ms. As in all of these scripts, a TTL is the last command on a key: if the clock is set back by more
-- while a script runs, Redis 7.0 takes the key for expired until the script ends, and what follows would find it empty, and leave it without a TTL.
local function extend_ttl(key, ms)
  if redis.call('PTTL', key) < tonumber(ms) then
    redis.call('PEXPIRE', key, ms)
  end
end
