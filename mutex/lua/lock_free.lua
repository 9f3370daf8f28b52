-- The common case of lock.lua; it runs first. The lock is free, no owner asks for it, its last fence is not ahead of the clock,
-- and the id is not among the gone, if there are any. It turns no numbers into strings: that would cost more than a command.
if fields[1] == '' and fields[2] and fields[4] and (fields[6] or '') == '' and not ARGV[7] then
  local t, length = redis.call('TIME'), tonumber(ARGV[2])
  local micros = t[1] * 1000000 + t[2]
  if fields[2] + 0 < micros and fields[4] - 600000 > micros / 1000 + length
    and (not fields[7] or fields[7] - micros / 1000 > 0 and not redis.call('ZSCORE', KEYS[3], ARGV[1])) then
    redis.call('HSET', KEYS[1], 'token', ARGV[1], 'fence', t[1] .. string.sub('00000' .. t[2], -6),
      'lease', t[1] .. ' ' .. t[2] .. ' ' .. ARGV[2] .. ' ' .. ARGV[5])
    return micros
  end
end
