-- Ends an update and stores what was written as put.lua does, which follows as a function, in the step that gives up the lock.
-- KEYS: as unlock_lone.lua
-- ARGV: as there; generation, TTL in ms, head and tail of the entry, its id and the id's offset, as for put.lua; for how long, in ms, the update
--       has had its lock
-- Returns what release.lua and what put.lua returns.
-- Safe to run twice: the second run finds its own id in the entry, or stores nothing, as the first removed the generation.
if is_common() then
  local slot = tonumber(ARGV[7])
  local lease = redis.pcall('HMGET', KEYS[8 + slot], 'generation', 'until')
  if lease[1] == ARGV[8] and not lease[2] then
    -- The lock's fence is the time when it was taken, unless the clock was behind that of an earlier one: this saves asking for the time.
    local at = math.floor(fields[1] / 1000) + ARGV[14]
    -- Before all other writes: after one, Redis would let the script exceed the memory limit.
    local status = redis.pcall('SET', KEYS[13 + slot], ARGV[10] .. written_at(at) .. ARGV[11], 'PX', ARGV[9]).err or 'stored'
    end_common(status == 'stored' and slot or nil)
    return {1, status}
  end
end
