-- Returns the time in ms, by the clock of the server that has the key.
-- KEYS: any key
-- Safe to run twice.
return (now_ms())
