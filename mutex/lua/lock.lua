-- Takes the lock, takes it once more for its owner, or queues for it. From an id that is queued, it is a heartbeat.
-- KEYS: lock, queue, gone
-- ARGV: id, lease ms, grace ms (0: do not queue), how many ms it waits at most, inbox ('' for none), when it came by
--       this server's clock in microseconds (0: now), its owner's token (absent: the id)
-- Returns the fence if the id has the lock for a whole lease | {1, ms left, fence, time} if it has it for less
--       | {0, ms until the holder's lease ends, fence of the last acquisition, time in microseconds} if it does not have it
-- Safe to run twice. An id that has the lock gets it again, for a whole lease; one that is queued keeps its place; one that has
-- given up gets nothing.
local key, queue, id, token = KEYS[1], KEYS[2], ARGV[1], ARGV[7] or ARGV[1]
local length, grace, patience, inbox = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]), ARGV[5]

if late(id) then
  return {0, 0, tonumber(s.fence), micros}
end
if s.gone ~= 0 and s.gone <= now then
  redis.call('HDEL', key, 'gone')
end
if s.token == '' and s.ticket == 0 then
  local fence, err = give(key, id, token, inbox, length)
  return err or fence
end

local deadline, was, address = parse(s.lease)
local left = math.min(deadline - now, was) -- more than its length: the clock was set back
local held = s.token ~= '' and left > 0
if held and deadline - now > was then
  although_full(key)
  redis.call('HSET', key, 'lease', lease(was, address)) -- its TTL is longer already
end

local again = holds(id, token)
if again or held and s.token == token then
  if s.ticket ~= 0 then
    leave(key, queue, id) -- it was given the lock out of turn
  end
  if again then
    extend(key, inbox, length)
    return tonumber(s.fence)
  end
  redis.call('HSET', key, 'holds', s.holds .. id .. ' ') -- another hold for the owner: it does not prolong the lease
  return {1, left, tonumber(s.fence), micros}
end

if grace > 0 and patience > 0 then
  local waiter = now + math.min(grace, patience) .. ' ' .. grace .. ' ' .. inbox .. ' ' .. token
  local ticket, came = s.ticket + math.max(micros - s.asked, 1), tonumber(ARGV[6])
  local waited = came > 0 and math.max(micros - came, 0) or 0
  local added = redis.pcall('ZADD', queue, 'NX', whole(ticket - waited), id)
  if type(added) == 'table' then
    if not redis.call('ZSCORE', queue, id) then
      return added
    end
    although_full(key)
  end
  if added == 1 or s.ticket == 0 then -- or the lock was deleted, and the queue was not
    s.ticket = ticket
    redis.call('HSET', key, 'waiter:' .. id, waiter, 'ticket', whole(ticket), 'asked', whole(micros))
  else
    redis.call('HSET', key, 'waiter:' .. id, waiter)
  end
  redis.call('PEXPIRE', queue, length + MEMORY)
end
if held then
  return {0, left, tonumber(s.fence), micros}
end

-- The holder is gone, and there may be a queue.
local first, fence, err = promote(key, queue)
if err then
  return err
elseif first == id then
  extend(key, inbox, length)
  return fence
elseif not first then
  fence, err = give(key, id, token, inbox, length)
  return err or fence
end
return {0, length, fence, micros}
