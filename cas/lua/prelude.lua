-- Shared by the scripts of this folder; each is sent with this text before it.
--
-- A value is a string that begins with its version. The list of recent versions has the tokens of the last writes, the
-- newest first, deletes included. It lives for a minute after the last of them.
--
-- KEYS: value, recent
-- ARGV: old version ('': no value), token of this write, repeated (1 if it may have been sent before), how many tokens
--       to remember, for how many ms

-- Returns nil if this write is to be done, or what it comes to: 1 it was done by an earlier copy, 0 another version is
-- there, -1 it may have been done by an earlier copy and forgotten.
local function verdict()
  local old, token, repeated = ARGV[1], ARGV[2], ARGV[3] == '1'
  local current = redis.call('GETRANGE', KEYS[1], 0, #token - 1)
  -- A version never comes back, so finding it proves that nothing was done. Absence does come back, and then the first
  -- copy may arrive after a repetition was done.
  if current == token or (repeated or old == '') and redis.call('LPOS', KEYS[2], token) then
    return 1
  end
  local forgotten = repeated and redis.call('LLEN', KEYS[2]) >= tonumber(ARGV[4])
  if current == old and not (old == '' and forgotten) then
    return nil
  end
  return forgotten and -1 or 0
end

local function remember()
  redis.call('LPUSH', KEYS[2], ARGV[2])
  redis.call('LTRIM', KEYS[2], 0, ARGV[4] - 1)
  redis.call('PEXPIRE', KEYS[2], ARGV[5])
end
