-- Says that the order stands in the database. Repeated, it changes nothing.
-- KEYS  as in reserve.lua
-- ARGV  1 request
-- Returns 1 if the reservation is confirmed now, 0 if there is none that was taken.
local record = redis.call('HGET', KEYS[2], ARGV[1])
if not record then return 0 end
local state, rest = record:match('^([^|]*)(.*)$')
if state == 'TAKEN' then redis.call('HSET', KEYS[2], ARGV[1], 'CONFIRMED' .. rest) end
return (state == 'TAKEN' or state == 'CONFIRMED') and 1 or 0
