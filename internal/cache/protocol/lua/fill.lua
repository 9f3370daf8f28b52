-- Stores what a load returned if the load's generation is still there, ends the lease, and hands the value to those that wait.
-- KEYS: value, lease, intents of transactions
-- ARGV: generation, TTL in ms (0: do not store), head and tail of the entry (the time of writing goes between them;
--       an empty tail: there is no entry), id of the load and its offset in the entry, the largest entry to push,
--       token of the load, for how many ms those that wait and ask again find the message about what is not stored
-- Returns 'stored' | 'kept' (valid, and not to be stored) | 'refused' | the error of Redis, which refused to store it. It fails where Redis takes
-- no writes; the lease is still there then.
-- Safe to run twice: a second run finds its own id in the entry. If nothing was stored, it returns 'refused', and the callers
-- that shared the load ask once more.
local id, offset = ARGV[5], tonumber(ARGV[6])

local lease, inboxes = parse_lease(fields)
local now, limit, over = now_ms(), nil, false
if lease['until'] and lease.generation == generation then
  limit, over = limit_of(KEYS[3], now)
end
if lease.generation ~= generation or over or lease['until'] and not limit then -- an intent has expired, or nobody knows
  if ttl > 0 and redis.pcall('GETRANGE', KEYS[1], offset, offset + #id - 1) == id then
    return 'stored'
  end
  if lease.token == ARGV[8] then -- a late copy of acquire took it: nobody will load for it
    redis.call('DEL', KEYS[2])
    wake(KEYS[2], inboxes, 'g', lease.generation)
  end
  return 'refused'
end

local entry = ''
if ARGV[4] ~= '' then
  entry = ARGV[3] .. written_at(now, limit) .. ARGV[4]
end

local status = 'kept'
if ttl > 0 then
  local reply = redis.pcall('SET', KEYS[1], entry, 'PX', math.min(ttl, limit or ttl))
  status = reply.err or 'stored'
end
if status ~= 'stored' then
  redis.pcall('DEL', KEYS[1]) -- what is there is older than what could not be stored
end
local ended = redis.pcall('DEL', KEYS[2])

local what = status == 'stored' and 'g' or 'p'
if entry ~= '' and #entry <= tonumber(ARGV[7]) then
  what = status == 'stored' and 'v' or 'k'
else
  entry = ''
end
if (lease.polled or inboxes[1]) and status ~= 'stored' then -- who asks next gets it, having waited for this generation; nobody else may
  redis.pcall('HSET', KEYS[2], 'message', what .. generation .. entry)
  redis.pcall('PEXPIRE', KEYS[2], math.min(limit or ARGV[9], ARGV[9]))
end
wake(KEYS[2], inboxes, what, generation, entry)
if type(ended) == 'table' then
  return ended -- Redis takes no writes: who waited has the value all the same
end
return status
