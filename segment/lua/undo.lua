-- Gives back what a take took. A take that has not run yet will take nothing.
-- KEYS: segment, receipt
-- ARGV: number, ms to keep the receipt
-- Returns how many units it gave back.
-- Safe to run twice: the second run finds nothing taken.
local number = tonumber(ARGV[1])
local last, taken = receipt_of(KEYS[2])
if last > number then
  return 0
end
write_receipt(KEYS[2], number, 0, ARGV[2])
if last < number or taken == 0 or redis.call('EXISTS', KEYS[1]) == 0 then
  return 0
end
change(KEYS[1], taken)
return taken
