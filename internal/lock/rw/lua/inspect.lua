-- Reports who holds the lock, and how many wait.
-- KEYS: as in the prelude
-- Returns {writer or '', fence, ms until the leases of the holders end, readers, writers queued, readers queued}
-- Safe to run twice.
advance()
return {
  writer or '', fence, math.max((writer and deadline or read_until) - now, 0),
  redis.call('ZCARD', readers), redis.call('ZCARD', writers), redis.call('ZCARD', waiting),
}
