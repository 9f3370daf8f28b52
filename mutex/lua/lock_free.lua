-- The common case of lock.lua, before which it runs: nobody has the lock, and nobody queues.
local free = redis.call('HMGET', KEYS[1], 'token', 'ticket', 'holds', 'fence', 'kept')
if free[1] == '' and not free[2] and (free[3] or '') == '' and ARGV[1] == ARGV[2] then
  local t = redis.call('TIME')
  local until_ms, length = t[1] * 1000 + math.floor(t[2] / 1000) + ARGV[3], ARGV[3]
  if tonumber(free[5]) >= until_ms + 600000 then
    local fence = math.max(free[4] + 1, t[1] * 1000000 + t[2])
    redis.call('HSET', KEYS[1], 'token', ARGV[2], 'fence', string.format('%.0f', fence),
      'lease', until_ms .. ' ' .. length .. ' ' .. ARGV[5])
    return {1, fence, tonumber(length)}
  end
end
