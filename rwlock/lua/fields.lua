-- Begins every script of this folder: what they all look at, read once. The prelude says what it is; the first six are those of all
-- locks with such a queue.
local fields = redis.call('HMGET', KEYS[1], 'fence', 'longest', 'gone', 'ticket', 'asked', 'kept', 'writer', 'deadline', 'solo')
