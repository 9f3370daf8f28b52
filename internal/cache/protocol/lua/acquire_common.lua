-- Runs before acquire.lua, as one script with it; acquire.lua goes on with h, now, left, stands, told, usable, limit, take and register. It
-- answers the common cases: a value that the caller can use, nothing at all, or a lease whose holder is alive. These need none of
-- the prelude's functions, and read no key that is known to be absent.
local there = redis.call('EXISTS', KEYS[1], KEYS[2], KEYS[3], KEYS[4])
if there == 0 and ARGV[2] == '0' then
  return {'free'}
end

local value = there > 0 and redis.pcall('GET', KEYS[1])
local usable = type(value) == 'string'
if usable and not ARGV[7] then
  return {'value', value, 0}
end

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
if usable then
  if string.sub(value, 1, tonumber(ARGV[8])) ~= ARGV[7] then
    return {'value', value, 0}
  end
  local at = tonumber(ARGV[9])
  if at > 0 and #value > at + 11 then
    local a, b, c, d, e, f, _, g, h, i, j, k = string.byte(value, at, at + 11)
    local written = ((((a * 256 + b) * 256 + c) * 256 + d) * 256 + e) * 256 + f
    if now - written < (((g * 256 + h) * 256 + i) * 256 + j) * 256 + k then
      return {'value', value, now}
    end
  end
end

local limit -- for how many ms a lease may last, as intents stand on the key; nil: none do

-- Takes the lease, which is free, if the caller wants it.
local function take(generation, dead)
  if ARGV[2] == '0' then
    return {'free'}
  end
  generation = generation or ARGV[1] .. time[1] .. string.sub('00000' .. time[2], -6)
  redis.call('HSET', KEYS[2], 'token', ARGV[1], 'deadline', now + ARGV[2], 'length', ARGV[2], 'generation', generation,
    'holder', now .. ' ' .. ARGV[5], unpack(limit and {'until', 1} or {}))
  local reply = redis.pcall('PEXPIRE', KEYS[2], limit and math.min(limit, ARGV[3]) or ARGV[3])
  if type(reply) == 'table' then
    redis.call('DEL', KEYS[2]) -- not allowed: no key may be left without a TTL
    return reply
  end
  return {'lease', generation, dead and 1 or 0, usable and 1 or 0}
end

-- Makes the holder, or the writer, notify the caller's inbox at its end. Returns 1 if it will. A caller without an inbox will ask again.
local function register(key)
  local inbox = ARGV[4] ~= '' and 'inbox:' .. ARGV[4]
  local reply = redis.pcall('HSET', key, inbox or 'polled', 1)
  return inbox and type(reply) == 'number' and 1 or 0 -- not when out of memory
end

local beside = value and there - 1 or there -- lease, intent, intents of transactions
if beside == 0 then
  return take()
end
local h = redis.pcall('HMGET', KEYS[2], 'token', 'deadline', 'generation', 'failed', 'error', 'length', 'message')
local left = tonumber(h[2] or 0) - now
local stands = left > 0 and left <= tonumber(h[6] or 0) -- more than its length: the clock was set back, and nobody renews the lease
local told = ARGV[6] ~= '' and h[7] and string.sub(h[7], 2, 1 + #ARGV[6]) == ARGV[6] and h[7] -- see fill.lua
if beside == 1 and stands and h[1] and h[1] ~= ARGV[1] and not told then
  return {'held', h[3], left, register(KEYS[2])}
end
