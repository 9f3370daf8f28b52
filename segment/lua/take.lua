-- Takes units from a segment: as many as there are, if that is enough.
-- KEYS: segment, receipt
-- ARGV: number, units, how many are enough, ms to keep the receipt
-- Returns how many it took (0: there were not enough), or -1 if there is no such segment, or -2 if the sender has made
-- another request since.
-- Safe to run twice: the second run finds its number in the receipt. A copy that is late finds a later one.
local number, units = tonumber(ARGV[1]), tonumber(ARGV[2])
local last, taken = receipt_of(KEYS[2])
if last == number then
  return taken
elseif last > number then
  return -2
end
if redis.call('EXISTS', KEYS[1]) == 0 then
  return -1
end
units = math.min(units, left_in(KEYS[1]))
if units < tonumber(ARGV[3]) then
  units = 0
else
  redis.call('HINCRBY', KEYS[1], 'left', string.format('%.0f', -units))
end
write_receipt(KEYS[2], number, units, ARGV[4])
return units
