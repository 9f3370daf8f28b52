-- Removes the value, kills the right of every running load to store one, and tells who waits to ask again, and local
-- tiers to forget the key.
-- KEYS: value, lease
-- ARGV: channel that local tiers listen to, notice for them
-- Returns 1 if there was a value, else 0.
-- Safe to run twice.
return forget(KEYS[1], KEYS[2], ARGV[1], ARGV[2])
