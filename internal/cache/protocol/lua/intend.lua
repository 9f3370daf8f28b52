-- Announces that a transaction may change the key: until it is done, or the intent expires, nothing that is cached lasts longer than the intent.
-- It excludes nobody.
-- KEYS: intents of transactions; the leases and the values of all version slots
-- ARGV: intent, how long it stands in ms, how long its end is remembered in ms, channel that local tiers listen to, notice for them,
--       where in an entry the time of writing begins
-- Returns 1.
-- Safe to run twice. A copy that arrives after the intent is done shortens lives until it expires.
local untils, now = KEYS[1], now_ms()
local ends = string.format('%.0f', now + ARGV[2])
local reply = redis.pcall('ZADD', untils, ends, ARGV[1])
if type(reply) == 'table' and string.find(reply.err, 'WRONGTYPE', 1, true) then
  redis.call('DEL', untils) -- a key of another type, where only intents belong
  reply = redis.pcall('ZADD', untils, ends, ARGV[1])
end
if type(reply) == 'table' then
  return reply -- out of memory: nothing will be written
end
local limit = clear_expired(untils, now)

-- Reports whether a key would not end with the intent.
local function outlasts(key)
  local left = redis.call('PTTL', key)
  return left == -1 or left > limit
end

-- Marks an entry, so that local tiers do not keep it; see written.lua.
local function mark(key)
  local at = tonumber(ARGV[6])
  local written = redis.pcall('GETRANGE', key, at, at + 6)
  if type(written) == 'string' and #written == 7 then
    local a, b, c, d, e, f = string.byte(written, 1, 6)
    written = redis.pcall('SETRANGE', key, at + 6, string.char((a + b + c + d + e + f + 85) % 256))
  end
  if type(written) == 'table' then
    redis.call('DEL', key) -- no entry, or no memory
  end
end

local values = {unpack(KEYS, 7)}
if redis.call('EXISTS', unpack(values)) > 0 then
  for _, key in ipairs(values) do
    if outlasts(key) then
      mark(key)
      redis.call('PEXPIRE', key, limit)
    end
  end
end
local leases = {unpack(KEYS, 2, 6)}
if redis.call('EXISTS', unpack(leases)) > 0 then
  for _, key in ipairs(leases) do
    if redis.call('EXISTS', key) == 1 then
      local cut = outlasts(key)
      if type(redis.pcall('HSET', key, 'until', 1)) == 'table' then
        redis.call('DEL', key) -- no lease, or no memory
      elseif cut then
        redis.call('PEXPIRE', key, limit)
      end
    end
  end
end
extend_ttl(untils, ARGV[2] + ARGV[3])
publish(ARGV[4], ARGV[5])
return 1
