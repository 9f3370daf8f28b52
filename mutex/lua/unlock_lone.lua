-- The common case of unlock.lua, before which it runs: the holder has no owner, and nobody waits.
if #ARGV == 1 then
  local fields = redis.call('HMGET', KEYS[1], 'token', 'ticket')
  if fields[1] == ARGV[1] and not fields[2] then
    if type(redis.pcall('HSET', KEYS[1], 'token', '', 'last', ARGV[1])) == 'table' then
      redis.call('HDEL', KEYS[1], 'token') -- out of memory
    end
    return 1
  end
end
