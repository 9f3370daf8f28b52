-- Announces a writer as begin_update.lua does, in the step that takes the write lock of the key, which it does not wait for. It follows the
-- parts of package rw, and goes on in lock_update_rest.lua. This is the common case: the lock is free, nobody updates or loads the key, and
-- no intents of transactions stand on it.
-- KEYS: of the lock; intent, intents of transactions, the leases of all version slots, the values of all version slots
-- ARGV: as acquire.lua; token of the update, intent ms, channel that local tiers listen to, notice for them, instance, which of the version slots
--       the update's value is for, and how long the update may last, in ms (0: no value is to be stored)
-- Returns as acquire.lua. With the fence, the update is announced, and the generation of what is to be stored is its token and the fence.
-- Safe to run twice: the holder's second run announces nothing again, and leaves no generation if it does. A copy that arrives after the update
-- has ended takes the lock, and keeps loads from storing, until lock and intent expire, unless the lock knows that its token is gone.
local token, lasting = ARGV[8], ARGV[14]
local fence, now = acquire_free(unpack(KEYS, 7, 13))
if fence then
  redis.call('HSET', KEYS[7], 'writer:' .. token, string.format('%.0f %s', now + ARGV[9], ARGV[9]), 'holder:' .. token, now .. ' ' .. ARGV[12])
  redis.call('PEXPIRE', KEYS[7], ARGV[9])
  redis.call('DEL', unpack(KEYS, 14, 18))
  publish(ARGV[10], ARGV[11])
  if lasting ~= '0' then
    local lease = KEYS[8 + ARGV[13]]
    redis.call('HSET', lease, 'generation', token .. string.format('%.0f', fence))
    redis.call('PEXPIRE', lease, lasting)
  end
  return fence
end
