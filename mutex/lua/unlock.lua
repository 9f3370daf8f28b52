-- Gives up a hold, or a place in the queue. When the lock becomes free by that, it goes to the next: to one in the same
-- process that this names, or to the first in the queue.
-- KEYS: lock, queue
-- ARGV: id, token (its owner's, or the id), next id ('' for none), its lease ms, its inbox,
--       1 if it goes before those in the queue
-- Returns {1} when the hold was given up | {2, fence} when the next has the lock | {0} when it was held no more
--       | {-1} when it was revoked
-- Safe to run twice: the lock remembers who released it last.
local key, queue, id, token, next = KEYS[1], KEYS[2], ARGV[1], ARGV[2], ARGV[3]

local lock = read(key, id)
if not holds(lock, id, token) then
  if lock.waiter then
    leave(key, queue, id)
  end
  if lock.last == id then
    if next ~= '' and lock.token == next then
      return {2, tonumber(lock.fence)}
    end
    return {1}
  end
  return {redis.call('HGET', key, 'revoked') == token and -1 or 0}
end

if token ~= id then
  local others = string.gsub(lock.holds, ' ' .. id .. ' ', ' ', 1)
  if others ~= ' ' then
    redis.call('HSET', key, 'holds', others, 'last', id)
    return {1}
  end
end

if lock.ticket or next ~= '' then
  local now, micros = clock()
  local first = next ~= '' and ARGV[6] == '1'
  if lock.ticket and not first and promote(key, queue, lock, id, now, micros) then
    return {1}
  end
  if next ~= '' then
    local fence, err = give(key, lock, id, next, next, ARGV[5], tonumber(ARGV[4]), now, micros)
    if not err then
      return {2, fence}
    end
  end
end
if type(redis.pcall('HSET', key, 'token', '', 'last', id)) == 'table' then
  redis.call('HDEL', key, 'token') -- out of memory
end
return {1}
