-- Around each script that publishes. Some servers refuse PUBLISH within scripts, so the reply says which messages were refused, and the
-- process sends them itself.
local refused = {}

local function publish(channel, message)
  if type(redis.pcall('PUBLISH', channel, message)) == 'table' then
    refused[#refused + 1] = channel
    refused[#refused + 1] = message
  end
end

local function run()
  SCRIPT
end

local reply = run()
if refused[1] then
  if reply == nil then
    reply = false -- a reply ends at nil
  end
  return {'\0refused', reply, unpack(refused)}
end
return reply
