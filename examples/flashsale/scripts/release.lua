-- Gives a reservation's stock back, once, if the reservation is in the state that the caller may end.
-- KEYS  as in reserve.lua
-- ARGV  1 request  2 the state: RESERVED for whoever gives up waiting, TAKEN for the consumer that has taken it  3 reason
-- Returns 1 if this call gave it back, 0 if not.
local record = redis.call('HGET', KEYS[2], ARGV[1])
if not record then return 0 end
local state, user, quantity = record:match('^([^|]*)|([^|]*)|([^|]*)')
if state ~= ARGV[2] then return 0 end
redis.call('HINCRBY', KEYS[1], 'left', quantity)
if redis.call('HINCRBY', KEYS[3], user, -tonumber(quantity)) <= 0 then redis.call('HDEL', KEYS[3], user) end
redis.call('HSET', KEYS[2], ARGV[1], 'RELEASED|' .. user .. '|' .. quantity .. '|' .. ARGV[3])
redis.call('ZREM', KEYS[4], ARGV[1])
return 1
