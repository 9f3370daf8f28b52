-- Removes the value if it has the old version.
-- KEYS, ARGV: see prelude.lua
-- Returns 1 if done | 0 if another version or no value is there | -1 if nobody can tell
-- Safe to run twice: the second run finds its token among the recent ones.
local done = verdict()
if done then
  return done
end
redis.call('DEL', KEYS[1]) -- first: when out of memory, Redis lets a script write only after it has freed some
remember()
return 1
