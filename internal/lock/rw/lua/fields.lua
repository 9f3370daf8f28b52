-- Begins every script of this folder, and reads once what they all need. The preludes describe the fields: package queue's the first
-- seven, this folder's the others.
local fields = redis.call('HMGET', KEYS[1], 'fence', 'longest', 'gone', 'ticket', 'asked', 'kept', 'grace', 'writer', 'deadline', 'solo')
