-- Removes the values of all versions, and revokes the right of every running load to store one. Tells those that wait to ask again,
-- and local tiers to forget the key.
-- KEYS: the leases and the values of all version slots
-- ARGV: channel that local tiers listen to, notice for them
-- Returns how many values and leases there were.
-- Safe to run twice.
return forget(ARGV[1], ARGV[2])
