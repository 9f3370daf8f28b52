-- Puts units into a segment.
-- KEYS: segment, this request's own receipt
-- ARGV: units, ms to keep the receipt, until (a missing segment is made with it; '': it is not made),
--       most units that the segment may have then (0: any number)
-- Returns 1 if done | 0 if there is no such segment | -1 if the segment would have too many
-- Safe to run twice: the second run finds the receipt, and returns what the first did.
local before = redis.call('GET', KEYS[2])
if before then
  return tonumber(before)
end
local made, limit, result = redis.call('EXISTS', KEYS[1]) == 0, tonumber(ARGV[4]), 1
if made and ARGV[3] == '' then
  result = 0
elseif limit > 0 and left_in(KEYS[1]) + ARGV[1] > limit then
  result = -1
end
redis.call('SET', KEYS[2], result, 'PX', ARGV[2])
if result ~= 1 then
  return result
end
change(KEYS[1], tonumber(ARGV[1]))
if made then
  redis.call('HSET', KEYS[1], 'until', ARGV[3])
  if ARGV[3] ~= '0' then
    redis.call('PEXPIREAT', KEYS[1], ARGV[3])
  end
end
return 1
