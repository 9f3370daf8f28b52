-- Ends an update as end_update.lua does, which follows as a function, in the step that gives up its lock.
-- KEYS, ARGV: as unlock_lone.lua
-- Returns what release.lua returns.
-- Safe to run twice: the second run finds another writer's lock and intent, or none, which it leaves alone; the key is invalidated again.
if is_common() then
  end_common()
  return 1
end
