-- Begins every script of this folder: what they all look at, read once. The prelude says what it is.
local fields = redis.call('HMGET', KEYS[1], 'writer', 'deadline', 'fence', 'longest', 'gone', 'ticket', 'asked', 'solo',
  'kept')
