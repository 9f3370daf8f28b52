-- Begins every script of this folder: what they all look at, read once. The prelude of package queue says what it is.
local fields = redis.call('HMGET', KEYS[1], 'fence', 'longest', 'gone', 'ticket', 'asked', 'kept')
