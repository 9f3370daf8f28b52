-- The common case of acquire.lua: a writer asks, and nobody holds or waits. The last fence is not ahead of the clock, the lock knows of
-- leases as long as this one, and its hash is kept for long enough. Lua writes a time in ms exactly, because it has fewer than 14 digits.
-- Returns the fence, which is the time in microseconds, and the time in ms; nil: acquire.lua has to find out. So it is if one of the
-- other keys exists.
local function acquire_free(...)
  if ARGV[2] == 'w' and not fields[8] and fields[1] and fields[2] and fields[6]
    and redis.pcall('EXISTS', KEYS[2], KEYS[3], KEYS[4], KEYS[5], ...) == 0 then -- if Redis refuses, the prelude can do without
    local t, length = redis.call('TIME'), tonumber(ARGV[3])
    local micros = t[1] * 1000000 + t[2]
    local now = math.floor(micros / 1000)
    if fields[1] + 0 < micros and length <= fields[2] + 0 and fields[6] - fields[2] - 600000 >= now
      and not (fields[3] and now < fields[3] + 0 and redis.call('ZSCORE', KEYS[6], ARGV[1])) then
      redis.call('HSET', KEYS[1], 'writer', ARGV[1], 'deadline', now + length .. '',
        'fence', t[1] .. string.sub('00000' .. t[2], -6), 'solo', fields[4] or '')
      return micros, now
    end
  end
end
