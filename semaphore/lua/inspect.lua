-- Reports who has a permit, and how many wait.
-- KEYS: as in the prelude
-- Returns {how many wait, then for each holder in the order of the deadlines: token, ms until its lease ends}
-- Safe to run twice.
advance()
local found = {redis.call('ZCARD', queue)}
for i, text in ipairs(redis.call('ZRANGE', holders, 0, -1, 'WITHSCORES')) do
  found[i + 1] = i % 2 == 0 and math.max(text - now, 0) or text
end
return found
