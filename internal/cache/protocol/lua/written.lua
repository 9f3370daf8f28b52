-- Runs before the scripts that store an entry: what goes between its head and its tail, the time and a check of it; see entry.go.
-- The check of an entry that ends with an intent is larger by 85, which no single bit makes: local tiers do not keep it.
local function written_at(ms, ends)
  local a, b, c = math.floor(ms / 1099511627776) % 256, math.floor(ms / 4294967296) % 256, math.floor(ms / 16777216) % 256
  local d, e, f = math.floor(ms / 65536) % 256, math.floor(ms / 256) % 256, ms % 256
  return string.char(a, b, c, d, e, f, (a + b + c + d + e + f + (ends and 85 or 0)) % 256)
end

