-- Takes the lock, takes it once more for its owner, or queues for it. Says that who is queued lives.
-- KEYS: lock, queue
-- ARGV: id, lease ms, grace ms (0: do not queue), inbox ('' for none), its owner's token (absent: the id)
-- Returns the fence when the id has the lock for a whole lease | {1, ms left, fence} when it has it for less
--       | {0, ms until the holder's lease ends, fence of the last acquisition} when it has not
-- Safe to run twice: who has the lock gets it again, for a whole lease; who is queued keeps its place.
local key, queue, id, token = KEYS[1], KEYS[2], ARGV[1], ARGV[5] or ARGV[1]
local length, grace, inbox = tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4]

local s = read(key)
if s.token == '' and s.ticket == 0 then
  local fence, err = give(key, s, id, token, inbox, length)
  return err or fence
end

local deadline, was, address = parse(s.lease)
local left = math.min(deadline - now, was) -- more than its length: the clock was set back
local held = s.token ~= '' and left > 0
if held and deadline - now > was then
  extend(key, s, address, was)
end

if s.token == token then
  if s.ticket ~= 0 then
    leave(key, queue, id) -- it was given the lock out of turn
  end
  if holds(s, id, token) then
    return extend(key, s, inbox, length) or tonumber(s.fence)
  end
  if held then -- another hold for the owner: it does not prolong the lease
    redis.call('HSET', key, 'holds', s.holds .. id .. ' ')
    return {1, left, tonumber(s.fence)}
  end
end

if grace > 0 then
  local waiter = now + grace .. ' ' .. grace .. ' ' .. inbox .. ' ' .. token
  if redis.call('HSET', key, 'waiter:' .. id, waiter) == 1 then
    s.ticket = redis.call('HINCRBY', key, 'ticket', 1)
  end
  redis.call('ZADD', queue, 'NX', s.ticket, id)
  redis.call('PEXPIRE', queue, length + MEMORY)
end
if held then
  return {0, left, tonumber(s.fence)}
end

-- The holder is gone, and there may be a queue.
local first, fence, err = promote(key, queue, s)
if err then
  return err
elseif first == id then
  return extend(key, s, inbox, length) or fence
elseif not first then
  fence, err = give(key, s, id, token, inbox, length)
  return err or fence
end
return {0, length, fence}
