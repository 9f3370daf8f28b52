-- Begins every script of this folder: what they all look at, read once. The prelude says what it is.
local fields = redis.call('HMGET', KEYS[1], 'token', 'fence', 'lease', 'kept', 'ticket', 'holds', 'gone', 'asked')
