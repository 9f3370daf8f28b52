-- Ends an update as end_update.lua does. Stores what was written if the writer's intent stood to the end, no other writer's has stood since
-- the update began, and nothing invalidated the key since. (One that has expired meanwhile may be that of a writer who lost the lock, wrote after
-- this one, and died.)
-- KEYS: value, lease, intent
-- ARGV: token, channel that local tiers listen to, notice for them, generation that begin_update.lua returned, TTL in ms,
--       head and tail of the entry (the time of writing goes between them), its id and the id's offset
-- Returns 'stored' | 'refused' | the error with which Redis refused to store it; the update has ended in any case.
-- Safe to run twice: a second run finds its own id in the entry, or stores nothing, because the first removed the generation.
-- A copy of begin_update.lua that arrives late makes another generation.
local offset = tonumber(ARGV[9])
if redis.pcall('GETRANGE', KEYS[1], offset, offset + #ARGV[8] - 1) == ARGV[8] then
  return 'stored'
end
local now, status, lease, limit, over = now_ms(), 'refused', read_lease(KEYS[2]), nil, false
if lease['until'] then
  limit, over = limit_of(KEYS[1], now)
  over = over or not limit
end
if lease.generation == ARGV[4] and not over and redis.call('HEXISTS', KEYS[3], 'writer:' .. ARGV[1]) == 1 then
  -- Before all other writes: after one, Redis would let the script exceed the memory limit.
  status = redis.pcall('SET', KEYS[1], ARGV[6] .. written_at(now, limit) .. ARGV[7], 'PX', math.min(ARGV[5], limit or ARGV[5])).err or 'stored'
end
forget(KEYS[1], ARGV[2], ARGV[3], status == 'stored' and KEYS[1])
redis.call('HDEL', KEYS[3], 'writer:' .. ARGV[1], 'holder:' .. ARGV[1])
local left, inboxes, writers = read_intent(KEYS[3], now)
if writers > 0 then
  redis.call('DEL', KEYS[1])
  status = 'refused'
end
if left <= 0 then
  redis.call('DEL', KEYS[3])
  wake_readers(KEYS[1], inboxes)
end
return status
