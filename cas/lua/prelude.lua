-- Shared by the scripts of this folder; each is sent with this text before it.
--
-- A value is a string that begins with its version. The list of recent versions holds the tokens of the last writes and
-- deletes, newest first. It expires a minute after the last of them.
--
-- KEYS: value, recent
-- ARGV: old version ('': no value), token of this write, repeated (1 if it may have been sent before), how many tokens
--       to remember, for how many ms

-- Returns nil if the write must still be done, else its outcome: 1 an earlier copy has done it, 0 another version is there,
-- -1 an earlier copy may have done it, and the list has forgotten that.
local function verdict()
  local old, token, repeated = ARGV[1], ARGV[2], ARGV[3] == '1'
  local current = redis.call('GETRANGE', KEYS[1], 0, #token - 1)
  -- A version never comes back, so finding the old one proves that no copy has run. Absence can come back, so the first
  -- copy may arrive after a repetition has run.
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
