-- The common case of unlock.lua; it runs first. The holder has no owner, none of its requests may come late, and nobody waits.
if #ARGV == 1 and fields[1] == ARGV[1] and not fields[5] and (fields[6] or '') == '' then
  if type(redis.pcall('HSET', KEYS[1], 'token', '', 'last', ARGV[1])) == 'table' then
    redis.call('HDEL', KEYS[1], 'token') -- out of memory, which does not matter to a script that has removed something
    redis.call('HSET', KEYS[1], 'last', ARGV[1])
  end
  return 1
end
