-- Comes before the source of a script, which is made a function, so that it runs at a time that the test names, and that what it publishes and when
-- keys end is kept where the test finds it: clock has the time, ends when each key ends, said the messages. These are written when the script has
-- ended: to Redis, all that a script writes is its own, and what its first write is decides whether it may write when memory is full.
local redis = (function(real)
  local call = real.call
  local ending, saying = {}, {}

  local function now()
    local t = call('HMGET', 'clock', 's', 'us')
    return t[1] * 1000 + math.floor(t[2] / 1000)
  end

  local function ends(key)
    if ending[key] == nil then
      return call('HGET', 'ends', key)
    end
    return ending[key]
  end

  local function check(key)
    if key and call('EXISTS', key) == 0 then
      ending[key] = false
    end
  end

  local function expire(key, at)
    if call('EXISTS', key) == 0 then
      call('DEL', key) -- a write that does nothing, as that is
      return 0
    end
    if at <= now() then
      call('DEL', key)
      ending[key] = false
    else
      call('PERSIST', key) -- as above
      ending[key] = string.format('%.0f', at)
    end
    return 1
  end

  local instead = {
    TIME = function() return call('HMGET', 'clock', 's', 'us') end,
    PUBLISH = function(channel, message)
      saying[#saying + 1] = channel .. ' ' .. message
      return 0
    end,
    PEXPIRE = function(key, ms) return expire(key, now() + ms) end,
    PEXPIREAT = function(key, at) return expire(key, tonumber(at)) end,
    PTTL = function(key)
      if call('EXISTS', key) == 0 then
        return -2
      end
      return (ends(key) or now() - 1) - now()
    end,
    SET = function(key, value, ...)
      local px, nx, i, options = nil, false, 1, {...}
      while options[i] do
        if options[i] == 'PX' then
          px, i = tonumber(options[i + 1]), i + 1
        else
          nx = true
        end
        i = i + 1
      end
      if px and px <= 0 then
        return call('SET', key, value, 'PX', px) -- which is refused
      end
      local reply = nx and call('SET', key, value, 'NX') or not nx and call('SET', key, value)
      if reply then
        ending[key] = px and string.format('%.0f', now() + px) or false
      end
      return reply
    end,
    DEL = function(...)
      for _, key in ipairs({...}) do
        ending[key] = false
      end
      return call('DEL', ...)
    end,
  }

  local function run(command, ...)
    if instead[command] then
      return instead[command](...)
    end
    local reply = call(command, ...)
    check((...))
    return reply
  end

  local function try(...)
    local well, reply = pcall(run, ...)
    if well then
      return reply
    end
    return type(reply) == 'table' and reply or {err = tostring(reply)}
  end

  -- finish runs the script, and writes what the test is to find, after a write that is never refused.
  local function finish(script)
    local well, reply = pcall(script)
    call('DEL', 'none')
    for key, at in pairs(ending) do
      if at then
        call('HSET', 'ends', key, at)
      else
        call('HDEL', 'ends', key)
      end
    end
    for _, message in ipairs(saying) do
      call('RPUSH', 'said', message)
    end
    if well then
      return reply
    end
    if type(reply) == 'string' then
      reply = {err = string.find(reply, '^%u+ ') and reply or 'ERR ' .. reply} -- what Redis said, or Lua
    end
    return reply
  end

  return setmetatable({call = run, pcall = try, finish = finish}, {__index = real})
end)(redis)
