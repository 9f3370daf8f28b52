-- Ends an update as end_update.lua does. Stores what was written if the writer's intent stood to the end, no other writer's has stood since
-- the update began, and nothing invalidated the key since. (One that has expired meanwhile may be that of a writer who lost the lock, wrote after
-- this one, and died.)
-- KEYS: as begin_update.lua
-- ARGV: token, channel that local tiers listen to, notice for them, which of the version slots the value is for, generation that begin_update.lua
--       returned, TTL in ms, head and tail of the entry (the time of writing goes between them), its id and the id's offset
-- Returns 'stored' | 'refused' | the error of Redis, which refused to store it; the update has ended in any case.
-- Safe to run twice: a second run finds its own id in the entry, or stores nothing, because the first removed the generation.
-- A copy of begin_update.lua that arrives late makes another generation.
local value, lease_key, offset = KEYS[7 + ARGV[4]], KEYS[2 + ARGV[4]], tonumber(ARGV[10])
if redis.pcall('GETRANGE', value, offset, offset + #ARGV[9] - 1) == ARGV[9] then
  return 'stored'
end
local now, status, lease, limit, over = now_ms(), 'refused', read_lease(lease_key), nil, false
if lease['until'] then
  limit, over = clear_expired(KEYS[2], now)
  over = over or not limit
end
if lease.generation == ARGV[5] and not over and redis.call('HEXISTS', KEYS[1], 'writer:' .. ARGV[1]) == 1 then
  -- Before all other writes: after one, Redis would let the script exceed the memory limit.
  status = redis.pcall('SET', value, ARGV[7] .. written_at(now, limit) .. ARGV[8], 'PX', math.min(ARGV[6], limit or ARGV[6])).err or 'stored'
end
forget(ARGV[2], ARGV[3], status == 'stored' and value)
redis.call('HDEL', KEYS[1], 'writer:' .. ARGV[1], 'holder:' .. ARGV[1])
local left, inboxes, writers = read_intent(KEYS[1], now)
if writers > 0 then
  redis.call('DEL', value)
  status = 'refused'
end
if left <= 0 then
  redis.call('DEL', KEYS[1])
  wake_readers(inboxes)
end
return status
