-- Makes an entry older, as if it had been written earlier: internal/cache/protocol/entry.go says where an entry has its time.
-- KEYS: entry
-- ARGV: by how many ms
-- Returns 1, or 0 if there is no entry.
local written = redis.call('GETRANGE', KEYS[1], 3, 8)
if #written < 6 then
  return 0
end
local ms, aged, sum = 0, '', 0
for i = 1, 6 do
  ms = ms * 256 + string.byte(written, i)
end
ms = ms - ARGV[1]
for i = 5, 0, -1 do
  local digit = math.floor(ms / 256 ^ i) % 256
  aged, sum = aged .. string.char(digit), sum + digit
end
redis.call('SETRANGE', KEYS[1], 3, aged .. string.char(sum % 256))
return 1
