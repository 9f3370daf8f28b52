-- Shared by undo, put and send, which are sent with this text before them.
--
-- A segment is a hash:
--   left     units that can be taken
--   version  how often units came in or were sent to another segment: takes alone do not change it
--   until    server time in ms when all segments expire; 0: never
--   token    of the Create. Only the first segment has it, and it means that the counter exists
--   to:ID    "SEGMENT UNITS": units that are on their way to another segment
--
-- A receipt is a string beside a segment, and records what was done last. Take's is "NUMBER UNITS": the number of the request,
-- which grows, and how many units it took. A script that ran only in part must not create units when it is repeated: one whose
-- repetition would add units again writes the receipt first; one whose repetition would take them again writes it last.

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

-- Changes what is left: units come in or, below 0, go to another segment.
local function change(key, units)
  redis.call('HINCRBY', key, 'left', string.format('%.0f', units))
  redis.call('HINCRBY', key, 'version', 1)
end
