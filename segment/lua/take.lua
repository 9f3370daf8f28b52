-- Takes units from a segment: as many as there are, if that is enough.
-- KEYS: segment, receipt
-- ARGV: number, units, how many are enough, ms to keep the receipt
-- Returns how many it took (0: there were not enough), or -1 if there is no such segment, or -2 if the sender has made
-- another request since.
-- Safe to run twice: the second run finds its number in the receipt. A copy that is late finds a later one.
-- It runs without the prelude, because nearly every request is a take.
local units, last = tonumber(ARGV[2]), redis.call('GET', KEYS[2])
if last then
  local number, taken = string.match(last, '^(%d+) (%d+)$')
  if number == ARGV[1] then
    return tonumber(taken)
  elseif tonumber(number) > tonumber(ARGV[1]) then
    return -2
  end
end
local left = redis.call('HGET', KEYS[1], 'left')
if not left then
  return -1
end
left = tonumber(left)
if left < units then
  units = left
end
if units < tonumber(ARGV[3]) then
  units = 0
else
  redis.call('HINCRBY', KEYS[1], 'left', string.format('%.0f', -units))
end
redis.call('SET', KEYS[2], string.format('%s %.0f', ARGV[1], units), 'PX', ARGV[4])
return units
