-- Begins every script of this folder, and reads once what they all need. The prelude describes the fields.
local fields = redis.call('HMGET', KEYS[1], 'token', 'fence', 'lease', 'kept', 'ticket', 'holds', 'gone', 'asked')
