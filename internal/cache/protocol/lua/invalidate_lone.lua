-- The common case of invalidate.lua; it runs first. Nobody loads the key, so that no right has to be revoked, and nobody waits.
if redis.pcall('EXISTS', unpack(KEYS, 1, 5)) == 0 then
  local removed = redis.call('DEL', unpack(KEYS, 6))
  publish(ARGV[1], ARGV[2])
  return removed
end
