-- Replaces the value if it has the old version.
-- KEYS, ARGV: see prelude.lua, and: the new value, which begins with the token; its TTL in ms (0: none)
-- Returns 1 if done | 0 if another version is there | -1 if nobody can tell
-- Safe to run twice: the second run finds its token in the value, or among the recent ones.
local done = verdict()
if done then
  return done
end
if ARGV[7] == '0' then
  redis.call('SET', KEYS[1], ARGV[6])
else
  redis.call('SET', KEYS[1], ARGV[6], 'PX', ARGV[7])
end
remember()
return 1
