-- Removes a value that is larger than any entry: to read it would take longer than anybody waits.
-- KEYS: value
-- ARGV: bytes that an entry has at most
-- Returns how many values were removed.
-- Safe to run twice.
local beyond = redis.pcall('GETRANGE', KEYS[1], ARGV[1], ARGV[1])
if type(beyond) == 'string' and beyond ~= '' then
  return redis.call('DEL', KEYS[1])
end
return 0
