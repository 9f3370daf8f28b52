-- The rest of lock_update.lua, with begin_update.lua as a function.
local before = fields[8]
if not before then
  fence = acquire_free() -- what else there is of the key is nothing to the lock
end
if not fence then
  fence = acquire({unpack(KEYS, 1, 6)}, ARGV)
  if type(fence) ~= 'number' then
    publish(ARGV[10], ARGV[11]) -- local tiers would wait for the number of the notice
    return fence
  end
end
local again = before == ARGV[1]
if again and redis.call('HEXISTS', KEYS[7], 'writer:' .. token) == 1 then
  return fence
end
local announced = begin({unpack(KEYS, 7)}, {
  token, ARGV[9], ARGV[10], ARGV[11], ARGV[12], ARGV[13],
  lasting ~= '0' and not again and lasting or nil, string.format('%.0f', fence),
})
return type(announced) == 'table' and announced or fence
