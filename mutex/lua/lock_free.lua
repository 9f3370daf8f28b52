-- The common case of lock.lua, before which it runs: nobody has the lock, and nobody queues.
local fields = redis.call('HMGET', KEYS[1], 'token', 'fence', 'lease', 'kept', 'ticket', 'holds')
if fields[1] == '' and not fields[5] and (fields[6] or '') == '' and ARGV[1] == ARGV[2] then
  local t, length = redis.call('TIME'), ARGV[3]
  local deadline = t[1] * 1000 + math.floor(t[2] / 1000) + length
  if tonumber(fields[4]) >= deadline + 600000 then
    local fence = math.max(fields[2] + 1, t[1] * 1000000 + t[2])
    redis.call('HSET', KEYS[1], 'token', ARGV[2], 'fence', string.format('%.0f', fence),
      'lease', deadline .. ' ' .. length .. ' ' .. ARGV[5])
    return {1, fence, tonumber(length)}
  end
end
