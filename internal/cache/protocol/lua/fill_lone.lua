-- The common case of fill.lua; it runs first. The lease is as acquire made it, with its five fields in their order, because no
-- process waits and no load has failed. The load's generation is there, and there is something to store.
local generation, ttl = ARGV[1], tonumber(ARGV[2])
local fields = redis.pcall('HGETALL', KEYS[2])
if #fields == 10 and fields[7] == 'generation' and fields[8] == generation and ttl > 0 and ARGV[4] ~= '' then
  local time = redis.call('TIME')
  local written = written_at(time[1] * 1000 + math.floor(time[2] / 1000))
  if redis.pcall('SET', KEYS[1], ARGV[3] .. written .. ARGV[4], 'PX', ARGV[2]).ok then
    redis.call('DEL', KEYS[2])
    return 'stored'
  end
end
