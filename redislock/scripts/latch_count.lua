-- latch_count: tells the count of a latch. It changes nothing.
--
-- KEYS  1 the latch
-- Returns  left COUNT | newer VERSION
local f = redis.call('HMGET', KEYS[1], 'v', 'n')
if f[1] and f[1] ~= '1' then
	return 'newer ' .. f[1]
end
return 'left ' .. (f[2] or '0')
