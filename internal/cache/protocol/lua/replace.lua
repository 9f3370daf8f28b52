-- Ends an intent as done.lua does, and puts in the place of what it removes what was loaded since it was announced: if the load's generation is
-- still there, so that nothing was stored or invalidated since, and the intent has stood to the end. If nothing is stored, a lease of another
-- generation stays: it was taken later, so its load is new enough. If that were ended too, writers would end each other's for ever.
-- KEYS: intents of transactions; the leases and the values of all version slots
-- ARGV: intent, channel that local tiers listen to, notice for them, which of the version slots the value is for, generation of the load, TTL in ms
--       (0: do not store; the generation is one that was found after the write), head and tail of the entry (the time of writing goes between them), its id and the id's offset, the largest entry to push
-- Returns 'stored' | 'refused' | the error of Redis, which refused to store it; the intent has ended in any case.
-- Safe to run twice: a second run finds its own id in the entry, or stores nothing, because the first removed the generation.
local lease_key, value, offset = KEYS[1 + ARGV[4]], KEYS[6 + ARGV[4]], tonumber(ARGV[10])
if redis.pcall('GETRANGE', value, offset, offset + #ARGV[9] - 1) == ARGV[9] then
  return 'stored'
end
local now, status, entry = now_ms(), 'refused', nil
local lease, inboxes = read_lease(lease_key)
local limit, over = limit_of(KEYS[1], now)
local stands = type(redis.pcall('ZSCORE', KEYS[1], ARGV[1])) == 'string'
if lease.generation == ARGV[5] and tonumber(ARGV[6]) > 0 and stands and not over then
  local first = redis.pcall('ZRANGE', KEYS[1], 0, 1, 'WITHSCORES')
  if first[1] == ARGV[1] then -- what is stored ends with the others only
    limit = first[4] and first[4] - now
  end
  entry = ARGV[7] .. written_at(now, limit) .. ARGV[8]
  -- Before all other writes: after one, Redis would let the script exceed the memory limit.
  status = redis.pcall('SET', value, entry, 'PX', math.min(ARGV[6], limit or ARGV[6])).err or 'stored'
end
redis.pcall('ZREM', KEYS[1], ARGV[1])
if status == 'stored' then
  redis.call('DEL', lease_key)
  if #entry <= tonumber(ARGV[11]) then
    wake(lease_key, inboxes, 'v', lease.generation, entry)
  else
    wake(lease_key, inboxes, 's', lease.generation)
  end
end
local later = lease.generation and lease.generation ~= ARGV[5] and lease_key
local notice = status == 'stored' and ARGV[3] or string.gsub(ARGV[3], '~ ', ' ', 1) -- its mark says that the key stays
forget(ARGV[2], notice, status == 'stored' and value or later)
return status
