-- Ends a lease whose load failed, remembers the failure for a moment, unless that is 0 ms, and wakes those that wait.
-- KEYS: lease, text of its failure
-- ARGV: token, error, first delay in ms, longest delay in ms, jitter (the share of the delay to take, 0 to 1), ms in which whoever waits
--       without messages asks again
-- Returns 1, or 0 if the token does not hold the lease. It fails where Redis takes no writes; the lease is still there then.
-- Safe to run twice: the first run removes the token.
local lease, inboxes = read_lease(KEYS[1])
if lease.token ~= ARGV[1] then
  return 0
end

local failures = tonumber(lease.failures or 0)
local delay = math.ceil(math.min(tonumber(ARGV[4]), ARGV[3] * 2 ^ failures) * ARGV[5])
if lease.polled then
  delay = math.max(delay, ARGV[6]) -- else each that asks again finds nothing, and loads
end
local ended = redis.pcall('HDEL', KEYS[1], 'token', 'error', 'polled')
if type(ended) == 'table' then -- Redis takes no writes: who waits learns of it all the same
  wake(KEYS[1], inboxes, 'f', lease.generation, ARGV[2])
  return ended
end
for _, inbox in ipairs(inboxes) do
  redis.call('HDEL', KEYS[1], 'inbox:' .. inbox)
end
local reply = redis.pcall('HSET', KEYS[1], 'deadline', string.format('%.0f', (now_ms()) + delay), 'length', delay,
  'failed', ARGV[1], 'failures', math.min(failures + 1, 30))
if type(reply) == 'table' and reply.err then
  redis.call('DEL', KEYS[1]) -- out of memory: forget the failure, but free the key
elseif delay > 0 then
  redis.pcall('SET', KEYS[2], ARGV[2], 'PX', delay) -- beside the hash, which counts failures for longer
end
wake(KEYS[1], inboxes, 'f', lease.generation, ARGV[2])
return 1
