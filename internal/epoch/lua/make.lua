-- Returns epochs, makes those that are not there, and lets all of them last.
-- KEYS: of the epochs, in one slot
-- ARGV: random text, TTL in ms
-- Returns the epochs, in the order of the keys.
-- Safe to run twice: a copy that arrives after an epoch was removed makes another one, because the time is part of it.
local all, time = {}, nil
for i, key in ipairs(KEYS) do
  local epoch = redis.pcall('GET', key)
  if type(epoch) == 'string' and #epoch == 8 then
    redis.call('PEXPIRE', key, ARGV[2])
  else
    time = time or redis.call('TIME')
    local hash = redis.sha1hex(table.concat({ARGV[1], time[1], time[2], i}, ' '))
    epoch = string.gsub(string.sub(hash, 1, 16), '..', function(hex) return string.char(tonumber(hex, 16)) end)
    redis.call('SET', key, epoch, 'PX', ARGV[2])
  end
  all[i] = epoch
end
return all
