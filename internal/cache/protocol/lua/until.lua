-- Follows the prelude in the scripts that must know which intents of transactions (intend.lua) stand on a key.
--
-- They are a sorted set, at P:{K}:until: its members are intents, its scores say when each ends, by the server's clock in ms. What is
-- cached or begun while they stand ends with the first of them: values and leases have its TTL at most. But a TTL may be some ms
-- longer than it should, and a load must not store on account of that. So the member stays for a while after its end: a load that
-- finds it stores nothing, and the first script that is to make something removes all that was made under it.

-- Returns for how many ms what is stored now may last; nil: no intent stands. Over: an intent has expired.
local function limit_of(untils, now)
  local ends = redis.pcall('ZRANGE', untils, 0, 0, 'WITHSCORES')[2] -- nothing of a key of another type, where no intent can be
  if ends and ends - now > 0 then
    return ends - now, false
  end
  return nil, ends ~= nil
end

-- Removes what there is of the key if an intent has expired. Returns for how many ms what is made now may last (nil: no intent stands), and
-- whether it removed anything.
local function clear_expired(untils, now)
  local limit, over = limit_of(untils, now)
  if over then
    redis.call('ZREMRANGEBYSCORE', untils, '-inf', now)
    forget()
    limit = limit_of(untils, now)
  end
  return limit, over
end
