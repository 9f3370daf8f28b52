-- Returns the version of a name, and makes one if there is none.
-- KEYS: version
-- ARGV: random text, TTL in ms
-- Returns the version.
-- Safe to run twice: a copy that arrives after the version was removed makes another one, because the time is part of it.
local version = redis.pcall('GET', KEYS[1])
if type(version) == 'string' and version ~= '' then
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
  return version
end
local time = redis.call('TIME')
version = ARGV[1] .. string.format('%.0f', time[1] * 1000000 + time[2])
redis.call('SET', KEYS[1], version, 'PX', ARGV[2])
return version
