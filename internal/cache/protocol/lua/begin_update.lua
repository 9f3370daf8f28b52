-- Announces a writer. Removes the values of all versions, and revokes the right of every running load to store one. No new load gets
-- that right until the writer ends its update or its intent expires.
-- KEYS: intent, intents of transactions, the leases and the values of all version slots
-- ARGV: token, intent ms, channel that local tiers listen to, notice for them, instance, which of the version slots the update's value is for; and
--       if that is to be stored, how long the update may last, in ms, and what the generation has behind the token (none: the time)
-- Returns 1, or, if the value is to be stored, a generation that only this update has and that every invalidation of the key removes
-- ('' if there is no memory for it).
-- Safe to run twice. A copy that arrives after the update has ended keeps loads from storing until the intent expires.
local reply = set_intent(KEYS[1], ARGV[1], ARGV[2], ARGV[5])
if type(reply) == 'table' and string.find(reply.err, 'WRONGTYPE', 1, true) then
  redis.call('DEL', KEYS[1]) -- a key of another type, where only intents belong
  reply = set_intent(KEYS[1], ARGV[1], ARGV[2], ARGV[5])
end
if type(reply) == 'table' then
  return reply -- nothing was removed, because nothing will be written
end
forget(ARGV[3], ARGV[4])
local generation = 1
if ARGV[7] then -- in a lease that nobody holds
  local time = redis.call('TIME')
  local now = time[1] * 1000 + math.floor(time[2] / 1000)
  local lease, limit = KEYS[2 + ARGV[6]], clear_expired(KEYS[2], now)
  drop_expired(KEYS[1], now)
  generation = ARGV[1] .. (ARGV[8] or time[1] .. string.sub('00000' .. time[2], -6))
  if type(redis.pcall('HSET', lease, 'generation', generation, unpack(limit and {'until', 1} or {}))) == 'table' then
    generation = ''
  else
    redis.call('PEXPIRE', lease, limit and math.min(limit, ARGV[7]) or ARGV[7])
  end
end
extend_ttl(KEYS[1], ARGV[2])
return generation
