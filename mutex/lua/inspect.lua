-- Looks at a lock.
-- KEYS: lock, queue
-- Returns {token ('' when it is free), fence, ms left, number of holds, number of waiters}
-- Safe to run twice.
local lock = read(KEYS[1], '')
local left = math.min(lock.deadline - clock(), lock.length)
local count = 1
if (lock.token or '') == '' or left <= 0 then
  lock.token, left, count = '', 0, 0
elseif (lock.holds or '') ~= '' then
  local _, spaces = string.gsub(lock.holds, ' ', '')
  count = spaces - 1
end
return {lock.token, tonumber(lock.fence or 0), left, count, redis.call('ZCARD', KEYS[2])}
