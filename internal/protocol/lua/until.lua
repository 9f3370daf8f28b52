-- Follows the prelude in the scripts that must know which intents of transactions (intend.lua) stand on a key.
--
-- They are a sorted set, at P:{K}:until: its members are intents, its scores say when each ends, by the server's clock in ms. What is
-- cached or begun while they stand ends with the first of them: values and leases have its TTL at most. But a TTL may be some ms
-- longer than it should, and a load must not store on account of that. So the member stays for a while after its end, and the first
-- script that finds it removes all that was made under it.

-- Returns for how many ms what is made now may last; nil: no intent stands. Over: an intent has expired, so what there was of the key has
-- been removed.
local function limit_of(value, now)
  local untils, over = base_of(value) .. ':until', false
  while true do
    local first = redis.pcall('ZRANGE', untils, 0, 0, 'WITHSCORES')
    if not first[2] then -- also of a key of another type, where no intent can be
      return nil, over
    end
    if first[2] - now > 0 then
      return first[2] - now, over
    end
    redis.call('ZREMRANGEBYSCORE', untils, '-inf', now)
    forget(value)
    over = true
  end
end
