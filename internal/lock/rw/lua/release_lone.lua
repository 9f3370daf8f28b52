-- The common case of release.lua: the writer leaves, none of its requests may come late, and nobody has queued since the queue was known
-- to be empty. Returns whether that is so.
local function is_lone()
  return fields[8] == ARGV[1] and ARGV[3] ~= '1' and fields[10] == (fields[4] or '')
end

local function release_lone()
  redis.call('HDEL', KEYS[1], 'writer', 'deadline')
end
