-- A consumer takes a reservation to book it: from now on only a consumer ends it, so it cannot be given back and booked.
-- A reservation that is not known (Redis has lost it, the queue has not) is made again from the message.
-- KEYS  as in reserve.lua
-- ARGV  1 request  2 user  3 quantity
-- Returns the state that it has now: TAKEN, CONFIRMED or RELEASED.
local record = redis.call('HGET', KEYS[2], ARGV[1])
if not record then
	record = 'RESERVED|' .. ARGV[2] .. '|' .. ARGV[3] .. '|'
	redis.call('HINCRBY', KEYS[1], 'left', -tonumber(ARGV[3]))
	redis.call('HINCRBY', KEYS[3], ARGV[2], ARGV[3])
end
local state, rest = record:match('^([^|]*)(.*)$')
if state ~= 'RESERVED' then return state end
redis.call('HSET', KEYS[2], ARGV[1], 'TAKEN' .. rest)
redis.call('ZREM', KEYS[4], ARGV[1])
return 'TAKEN'
