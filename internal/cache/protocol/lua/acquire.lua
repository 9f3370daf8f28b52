-- Returns the value, takes the lease to load it, or registers the caller for a wake-up by the holder of the lease.
-- KEYS: value, lease, intent, intents of transactions, text of the lease's failure; the leases and the values of all version slots
-- ARGV: token, lease ms (0: do not take it), keep ms (TTL of the hash), inbox ('' for none), instance, the generation that the caller has
--       waited for ('' for none); and if there is a value that the caller cannot use: its first bytes, how many bytes to
--       compare, and where its time of writing begins if its age is the reason, else 0
-- Returns {'value', entry, time in ms if it is the caller's value and fresh by this clock, else 0}
--       | {'lease', generation, 1 if taken over from a dead holder, 1 if the caller's value is still there} | {'free'}
--       | {'left', message about the end of the generation that the caller has waited for}
--       | {'held', generation, ms left, 1 if registered} | {'failed', token, error, ms left}
--       | {'writing', generation of the message that reports the end, ms left, 1 if registered, since how many ms a writer stands, its instance}
-- Safe to run twice: its own token means acquired. A copy that arrives after the lease was removed takes a lease of another
-- generation, which is of no use to the load that sent the copy.
local over
limit, over = clear_expired(KEYS[4], now)
if over then
  h, left, stands, usable, told = {}, 0, false, false, false
end
if told then
  return {'left', told} -- nothing was stored or invalidated since: it would have removed the hash
end

if redis.call('EXISTS', KEYS[3]) == 1 then
  local ends, _, _, holder = read_intent(KEYS[3], now)
  if ends > 0 then
    local since, instance = string.match(holder or '', '^(%d+) (.*)$')
    return {'writing', WRITING, ends, register(KEYS[3]), now - (since or now), instance or ''}
  end
  redis.call('DEL', KEYS[3])
end

if h.err then
  redis.call('DEL', KEYS[2]) -- a key of another type, where only leases belong
end
if h[1] == ARGV[1] then
  return {'lease', h[3], 0, usable and 1 or 0}
elseif stands and h[1] then
  return {'held', h[3], left, register(KEYS[2])}
elseif stands then
  local text = redis.pcall('GET', KEYS[5])
  text = type(text) == 'string' and text or h[5] -- h[5]: an earlier version of the library wrote it
  if text then
    return {'failed', h[4], text, left}
  end -- Redis evicted it: without its text, the failure is forgotten
end
return take(h[3], h[1])
