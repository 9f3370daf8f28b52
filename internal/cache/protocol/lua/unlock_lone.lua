-- Begins the scripts that end an update in the step that gives up its lock. It follows the parts of package rw, and defines what they
-- have in common.
-- KEYS: as lock_update.lua
-- ARGV: as release.lua; token of the update, channel that local tiers listen to, notice for them, which of the version slots the update's value is for

-- Returns whether this is the common case: nobody else has asked for the lock, and the intent has stood to the end, is this writer's alone, and
-- nobody waits for it. No load has got a lease since the update began, then: there is nobody to wake.
local function is_common()
  if not is_lone() then
    return false
  end
  local intent = redis.pcall('HGETALL', KEYS[7])
  return #intent == 4 and (intent[1] == 'writer:' .. ARGV[4] or intent[3] == 'writer:' .. ARGV[4])
end

-- Removes the intent, and the values and leases of all version slots but the value kept, and gives the lock up.
local function end_common(kept)
  local gone = {KEYS[7], unpack(KEYS, 9, 18)}
  if kept then
    table.remove(gone, 6 + kept)
  end
  redis.call('DEL', unpack(gone))
  publish(ARGV[5], ARGV[6])
  release_lone()
end

-- Gives the lock up by release.lua.
local function give_up()
  return release({unpack(KEYS, 1, 6)}, {unpack(ARGV, 1, 3)})
end
