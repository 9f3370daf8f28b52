-- Shared by undo, put and send, which are sent with this text before them.
--
-- A segment is a hash:
--   left     units that can be taken
--   version  how often units came in or were sent to another segment: takes alone do not change it
--   until    server time in ms at which all segments expire; 0: never
--   token    of the Create; only in the first segment, whose presence means that there is such a counter
--   to:ID    "SEGMENT UNITS": units that are on their way to another segment
--
-- A receipt is a string beside a segment, and remembers what was done last. Take's is "NUMBER UNITS": the number of the
-- request, which grows, and what it took. A request that would make units out of nothing when it ran half writes the
-- receipt first; one that would take them twice writes it last.

local function receipt_of(key)
  local number, units = string.match(redis.call('GET', key) or '', '^(%d+) (%d+)$')
  return tonumber(number or 0), tonumber(units or 0)
end

local function write_receipt(key, number, units, keep)
  redis.call('SET', key, string.format('%.0f %.0f', number, units), 'PX', keep)
end

local function left_in(key)
  return tonumber(redis.call('HGET', key, 'left') or 0)
end

-- Changes what is left by units that come in or, below 0, go to another segment.
local function change(key, units)
  redis.call('HINCRBY', key, 'left', string.format('%.0f', units))
  redis.call('HINCRBY', key, 'version', 1)
end
