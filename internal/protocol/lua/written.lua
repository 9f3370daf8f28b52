-- Runs before the scripts that store an entry: what goes between its head and its tail, the time and a check of it; see entry.go.
local function written_at(ms)
  local a, b, c = math.floor(ms / 1099511627776) % 256, math.floor(ms / 4294967296) % 256, math.floor(ms / 16777216) % 256
  local d, e, f = math.floor(ms / 65536) % 256, math.floor(ms / 256) % 256, ms % 256
  return string.char(a, b, c, d, e, f, (a + b + c + d + e + f) % 256)
end

