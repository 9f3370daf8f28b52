-- Shared by the scripts of this folder; each is sent with this text before it, after fields.lua and the prelude of package queue.
--
-- KEYS, the same for every script:
--   lock     hash: as in the prelude of package queue, where a waiter's inbox has the number of permits and a colon before it. The fence
--            only changes when all permits are revoked
--   holders  zset: the tokens that have a permit, by deadline
--   queue    zset: the tokens that wait, by ticket less the microseconds that each had waited before it got one
--   alive, gone: as in the prelude of package queue
local holders, queue = KEYS[2], KEYS[3]

local held -- how many have a permit

local function hold(token, till)
  redis.call('ZADD', holders, whole(till), token)
  keep(holders, held == 0)
end

-- Gives permits to those that wait, in their order. The number of permits is the one that the waiter knows of. Nobody overtakes it.
local function hand_on()
  while queued do
    local first = redis.call('ZRANGE', queue, 0, 0)[1]
    local waiter = first and redis.call('HGET', lock, 'waiter:' .. first)
    if not first or held >= tonumber(string.match(waiter or '', '^%d+:%d+:%d+:(%d+):') or 1) then
      return
    end
    local till, rest, ticket = grant_to(leave(first))
    hold(first, till)
    held = held + 1
    local inbox = string.match(rest or '', '^%d+:(.+)$')
    if inbox then
      wake(inbox, lock .. ':' .. first, ticket .. ':' .. whole(fence))
    end
  end
end

-- Ends the leases that have expired, and removes the dead from the queue.
local function expire()
  held = 0
  if highest(holders, longest > 0 and now + longest or math.huge) > 0 then
    redis.call('ZREMRANGEBYSCORE', holders, '-inf', whole(now))
    held = redis.call('ZCARD', holders)
  end
  bury()
end

-- Every script calls it first, except those that take something away: they hand on after that.
local function advance()
  expire()
  hand_on()
end

-- Renews the token's lease, and returns whether it has one. The lease never ends sooner than before, whatever the clock and the length.
local function renew(token, length)
  local till = held > 0 and redis.call('ZSCORE', holders, token)
  if till then
    although_full()
    hold(token, math.max(tonumber(till), lease(length)))
  end
  return till
end

-- Returns in how many ms the first lease ends (0), or the last (-1).
local function ends(i)
  local till = held > 0 and redis.call('ZRANGE', holders, i, i, 'WITHSCORES')[2] or now
  return math.max(till - now, 1)
end

-- Returns in how many ms asking again may change something for a waiter: for the first in the queue, when the first lease has ended.
-- Those behind it need not all come then, so they ask when the last one has.
local function soonest(token)
  return ends(redis.call('ZRANGE', queue, 0, 0)[1] == token and 0 or -1)
end
