-- Sends units on their way to another segment; fewer if there are not that many.
-- KEYS: segment, this request's own receipt
-- ARGV: id, segment they go to, units, ms to keep the receipt
-- Returns how many are on their way.
-- Safe to run twice: the second run finds them on their way, or, when they have arrived, the receipt.
local field = 'to:' .. ARGV[1]
local sent = redis.call('HGET', KEYS[1], field)
if sent then
  return tonumber(string.match(sent, ' (%d+)$'))
end
local units = math.min(left_in(KEYS[1]), ARGV[3])
if units <= 0 or redis.call('EXISTS', KEYS[2]) == 1 then
  return 0
end
redis.call('SET', KEYS[2], '', 'PX', ARGV[4])
change(KEYS[1], -units)
redis.call('HSET', KEYS[1], field, string.format('%s %.0f', ARGV[2], units))
return units
