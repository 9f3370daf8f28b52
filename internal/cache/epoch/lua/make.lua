-- Returns epochs, makes those that are not there, and lets all of them last, except those that end with an intent.
-- KEYS: of the epochs, then those of the intents on their names, in one slot
-- ARGV: random text, TTL in ms
-- Returns the epochs, in the order of the keys.
-- Safe to run twice: a copy that arrives after an epoch was removed makes another one, because the time is part of it.
local all, time, now = {}, nil, nil
if redis.call('EXISTS', unpack(KEYS, names + 1)) > 0 then
  now = now_ms()
end
for i = 1, names do
  local key, limit = KEYS[i], now and limit_of(i, now)
  local epoch = redis.pcall('GET', key)
  local length = type(epoch) == 'string' and #epoch
  if length == 8 and not limit then
    redis.call('PEXPIRE', key, ARGV[2])
  elseif length ~= 9 then
    time = time or redis.call('TIME')
    local hash = redis.sha1hex(table.concat({ARGV[1], time[1], time[2], i}, ' '))
    epoch = string.gsub(string.sub(hash, 1, 16), '..', function(hex) return string.char(tonumber(hex, 16)) end)
    epoch = limit and epoch .. '!' or epoch
    redis.call('SET', key, epoch, 'PX', limit and math.min(limit, ARGV[2]) or ARGV[2])
  end
  all[i] = epoch
end
return all
