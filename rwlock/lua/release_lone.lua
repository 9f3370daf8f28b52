-- The common case of release.lua, before which it runs: the writer leaves, none of its requests may come late, and nobody has queued
-- since it was known that nobody waits.
if fields[7] == ARGV[1] and ARGV[3] ~= '1' and fields[9] == (fields[4] or '') then
  redis.call('HDEL', KEYS[1], 'writer', 'deadline')
  return 1
end
