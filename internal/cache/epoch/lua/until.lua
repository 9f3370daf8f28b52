-- Precedes the scripts of this folder that must know which intents of transactions stand on a name.
--
-- They are a sorted set beside each epoch, see scripts.go: its members are intents, its scores say when each ends, by the server's clock in ms. An epoch
-- that was there when an intent came, or was made while one stands, ends with the first of them, and has a ! behind it: what was made
-- under it is not kept by local tiers. A member stays for a while after its end, and the first script that finds it removes the epoch:
-- a TTL may be some ms longer than it should.

-- The second half of KEYS are the sets of the epochs at the first half.
local names = #KEYS / 2

-- Returns for how many ms the epoch of the i-th name may last; nil: as long as usual.
local function limit_of(i, now)
  local key, untils = KEYS[i], KEYS[names + i]
  while true do
    local first = redis.pcall('ZRANGE', untils, 0, 0, 'WITHSCORES')
    if not first[2] then
      return nil
    end
    if first[2] - now > 0 then
      return first[2] - now
    end
    redis.call('ZREMRANGEBYSCORE', untils, '-inf', now)
    redis.call('DEL', key)
  end
end

local function now_ms()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end
