-- Reports who holds a lock, and how many wait.
-- KEYS: lock, queue
-- Returns {token ('' if it is free), fence, ms left, number of holds, number of waiters}
-- Safe to run twice.
local deadline, length = parse(s.lease)
local left, count = math.min(deadline - now, length), 1
if s.token == '' or left <= 0 then
  s.token, left, count = '', 0, 0
elseif s.holds ~= '' then
  count = select(2, string.gsub(s.holds, ' ', ''))
end
return {s.token, tonumber(s.fence), left, count, redis.call('ZCARD', KEYS[2])}
