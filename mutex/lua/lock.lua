-- Takes the lock, takes it once more for its owner, or queues for it. Says that who is queued lives.
-- KEYS: lock, queue
-- ARGV: id, token (its owner's, or the id), lease ms, grace ms (0: do not queue), inbox ('' for none)
-- Returns {1, fence, lease ms} when the id has the lock | {0, ms until the holder's lease ends}
-- Safe to run twice: who has the lock gets it again, for a whole lease; who is queued keeps its place.
local key, queue, id, token = KEYS[1], KEYS[2], ARGV[1], ARGV[2]
local length, grace, inbox = tonumber(ARGV[3]), tonumber(ARGV[4]), ARGV[5]

local lock = read(key, id)
local now, micros = clock()
local left = lock.deadline - now

if holds(lock, id, token) then
  if lock.waiter then
    leave(key, queue, id) -- it was given the lock out of turn
  end
  redis.call('HSET', key, 'deadline', int(now + length), 'length', length, 'inbox', inbox)
  keep(key, lock.kept, now, length)
  return {1, tonumber(lock.fence), length}
end

if lock.token == token and left > 0 then -- another hold for the owner: it neither renews nor prolongs the lease
  if lock.waiter then
    leave(key, queue, id)
  end
  redis.call('HSET', key, 'holds', lock.holds .. id .. ' ')
  return {1, tonumber(lock.fence), left}
end

local held = (lock.token or '') ~= '' and left > 0
if not held and not lock.ticket then
  local fence, err = give(key, lock, '', id, token, inbox, length, now, micros)
  return err or {1, fence, length}
end

if held and left > lock.length then -- the clock was set back
  left = lock.length
  redis.call('HSET', key, 'deadline', int(now + left))
end
if grace > 0 then
  local ticket = tonumber(lock.ticket or 0)
  if not lock.waiter then
    ticket = ticket + 1
  end
  redis.call('HSET', key, 'ticket', int(ticket),
    'waiter:' .. id, int(now + grace) .. ' ' .. ARGV[4] .. ' ' .. inbox .. ' ' .. token)
  redis.call('ZADD', queue, 'NX', int(ticket), id)
  redis.call('PEXPIRE', queue, int(length + MEMORY))
end
if held then
  return {0, left}
end

-- The holder is gone, and there is a queue.
local next, fence = promote(key, queue, lock, '', now, micros)
if next == id then
  redis.call('HSET', key, 'deadline', int(now + length), 'length', length)
  keep(key, lock.kept, now, length)
  return {1, fence, length}
end
if not next then -- nobody in it lives: the asker only asks once
  local err
  fence, err = give(key, lock, '', id, token, inbox, length, now, micros)
  return err or {1, fence, length}
end
return {0, grace > 0 and grace or length}
