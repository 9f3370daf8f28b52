-- Begins every script of this folder, and reads once what they all need. The prelude of package queue describes the fields.
local fields = redis.call('HMGET', KEYS[1], 'fence', 'longest', 'gone', 'ticket', 'asked', 'kept', 'grace')
