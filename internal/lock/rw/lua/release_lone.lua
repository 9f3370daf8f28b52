-- The common case of release.lua: the writer leaves, none of its requests may come late, and nobody has queued since the queue was known
-- to be empty. Returns whether that is so. If somebody has removed the ticket, which was asked for, that is not known.
local function is_lone()
  return fields[8] == ARGV[1] and ARGV[3] ~= '1' and fields[10] == (fields[4] or not fields[5] and '' or nil)
end

local function release_lone()
  redis.call('HDEL', KEYS[1], 'writer', 'deadline')
end
