-- Returns what is at each key but those of the test: its name, what it holds, and when it ends. Then all messages, which it removes.
local names, found = redis.call('KEYS', '*'), {}
table.sort(names)
for _, key in ipairs(names) do
  if key ~= 'clock' and key ~= 'ends' and key ~= 'said' then
    local kind, all = redis.call('TYPE', key).ok, nil
    if kind == 'string' then
      all = {redis.call('GET', key)}
    elseif kind == 'hash' then
      local flat = redis.call('HGETALL', key)
      all = {}
      for i = 1, #flat, 2 do
        all[#all + 1] = flat[i] .. '=' .. flat[i + 1]
      end
      table.sort(all)
    elseif kind == 'zset' then
      all = redis.call('ZRANGE', key, 0, -1, 'WITHSCORES')
    else
      all = redis.call('LRANGE', key, 0, -1)
    end
    found[#found + 1] = key .. ' ' .. kind .. ' ' .. table.concat(all, ' ') .. ' until ' .. (redis.call('HGET', 'ends', key) or 'never')
  end
end
local said = redis.call('LRANGE', 'said', 0, -1)
redis.call('DEL', 'said')
return {found, said}
