-- Takes the lock away from its holder, tells it, and gives the lock to the next.
-- KEYS: lock, queue
-- ARGV: the key under which lockers are told
-- Returns 1, or 0 if nobody held it.
-- Safe to run twice, but a second run may revoke the next holder.
local key, queue = KEYS[1], KEYS[2]

local lock = read(key, '')
local now, micros = clock()
if (lock.token or '') == '' or lock.deadline <= now then
  return 0
end
local inbox = redis.call('HGET', key, 'inbox')
redis.call('HSET', key, 'token', '', 'holds', '', 'revoked', lock.token)
if inbox and inbox ~= '' then
  redis.pcall('PUBLISH', inbox, #ARGV[1] .. ':' .. ARGV[1] .. lock.token) -- not allowed: the next renewal tells it
end
if lock.ticket then
  promote(key, queue, lock, '', now, micros)
end
return 1
