-- Gives up a hold, or a place in the queue. If that frees the lock, the next one gets it: the successor from the same process
-- that is named here, or the first in the queue.
-- KEYS: lock, queue, gone
-- ARGV: id, and if need be: token (its owner's, or the id), 1 if requests of the id may still be on their way (else 0), and
--       then: successor's id, its lease ms, its inbox, 1 if it goes before those in the queue
-- Returns 1 if the hold was given up | the successor's fence if that has the lock | 0 if the id did not hold the lock any
--       more, or not yet | -1 if the lock was revoked
-- Safe to run twice: the lock remembers the id that gave it up last.
local key, queue, gone, id, token, successor = KEYS[1], KEYS[2], KEYS[3], ARGV[1], ARGV[2] or ARGV[1], ARGV[4]

if ARGV[3] == '1' then
  remember(key, gone, id)
end
if successor and late(successor) then
  successor = nil
end
if not holds(id, token) then
  if s.ticket ~= 0 and leave(key, queue, id) then
    return 0
  end
  local more = redis.call('HMGET', key, 'last', 'revoked')
  if more[1] == id then
    return successor and s.token == successor and tonumber(s.fence) or 1
  end
  return more[2] == token and -1 or 0
end

if token ~= id then
  local at, to = string.find(' ' .. s.holds, ' ' .. id .. ' ', 1, true)
  s.holds = string.sub(s.holds, 1, at - 1) .. string.sub(s.holds, to)
  if s.holds ~= '' then
    although_full(key)
    redis.call('HSET', key, 'holds', s.holds, 'last', id)
    return 1
  end
end

s.last = id
if s.ticket ~= 0 or successor then
  local before = successor and ARGV[7] == '1'
  if s.ticket ~= 0 and not before and promote(key, queue) then
    return 1
  end
  if successor then
    if s.ticket ~= 0 then
      leave(key, queue, successor) -- it queued before a copy of this came
    end
    local fence, err = give(key, successor, successor, ARGV[6], tonumber(ARGV[5]))
    if not err then
      return fence
    end
  end
end
if type(redis.pcall('HSET', key, 'token', '', 'holds', '', 'last', id)) == 'table' then
  redis.call('HDEL', key, 'token', 'holds') -- out of memory: as although_full
  redis.call('HSET', key, 'last', id)
end
return 1
