-- latch_down: takes one from the count of a latch, and tells those who watch when nothing is left.
--
-- KEYS  1 the latch   2 what was answered to this ID   3 the watchers of the latch
-- ARGV  1 the ID   2 for how many ms the answer is remembered
-- Returns  left COUNT | newer VERSION
-- Atomic, because the count and the ID that has counted are one: asked again, it counts once. The ID is remembered as long as a
-- copy may be under way, and not in the latch: with hundreds of thousands its DEL would stop the server.
--
-- It begins with a write that a server without memory does not refuse, so that latches come down on one too.
if call('PEXPIRE', KEYS[2], ARGV[2]) == 1 then
	return call('GET', KEYS[2])
end
local f = call('HMGET', KEYS[1], 'v', 'n')
if f[1] and f[1] ~= '1' then
	return 'newer ' .. f[1]
end
local left = '0'
if f[2] then
	left = string.format('%.0f', f[2] - 1)
	if left == '0' then
		call('DEL', KEYS[1])
		tell(KEYS[3])
	else
		call('HSET', KEYS[1], 'n', left)
	end
end
local answer = 'left ' .. left
call('SET', KEYS[2], answer, 'PX', ARGV[2])
return answer
