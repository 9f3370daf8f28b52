-- Announces that a transaction may change what has a tag: until it is done, or the intent expires, no epoch of the tag lasts longer than
-- the intent.
-- KEYS: epoch of the tag, epoch of all tags together, then those of the intents on the two, in one slot
-- ARGV: intent, how long it stands in ms, how long its end is remembered in ms, channel that local tiers listen to, notice for them (nothing:
--       the intent is renewed, if it stands)
-- Returns 1, or 0 if an intent to be renewed is gone: it is done, has expired or was evicted.
-- Safe to run twice. A copy that arrives after the intent is done shortens the lives of epochs until it expires.
local now, intent = now_ms(), KEYS[1] .. ' ' .. ARGV[1]
for i = 1, names do
  limit_of(i, now)
  if not ARGV[4] and not redis.pcall('ZSCORE', KEYS[names + i], intent) then
    return 0
  end
end
if not ARGV[4] then
  redis.call('ZREM', KEYS[names + 1], '') -- a script that has written something may write more though memory is full
end
for i = names + 1, #KEYS do
  local untils = KEYS[i]
  local ends = string.format('%.0f', now + ARGV[2])
  local reply = redis.pcall('ZADD', untils, ends, intent)
  if type(reply) == 'table' and string.find(reply.err, 'WRONGTYPE', 1, true) then
    redis.call('DEL', untils)
    reply = redis.pcall('ZADD', untils, ends, intent)
  end
  if type(reply) == 'table' then
    return reply -- out of memory: nothing will be written
  end
end
for i = 1, names do
  local key = KEYS[i]
  local limit, epoch = limit_of(i, now), redis.pcall('GET', key)
  if type(epoch) == 'string' and #epoch == 9 then
    redis.call('PEXPIRE', key, limit) -- all the intents that it ends with stand
  elseif epoch then
    limit = math.min(limit, redis.call('PTTL', key))
    if type(epoch) ~= 'string' or #epoch ~= 8 or limit <= 0 or redis.pcall('SET', key, epoch .. '!', 'PX', limit).err then
      redis.call('DEL', key)
    end
  end
end
local last = ARGV[2] + ARGV[3]
for i = names + 1, #KEYS do
  if redis.call('PTTL', KEYS[i]) < last then
    redis.call('PEXPIRE', KEYS[i], last) -- the last command on it: see prelude.lua of package protocol
  end
end
if ARGV[4] then
  publish(ARGV[4], ARGV[5])
end
return 1
