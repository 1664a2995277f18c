-- watch: has a process told of changes of a lock or latch, for a while. Asked again, it goes on.
--
-- KEYS  1 the watchers of the lock
-- ARGV  1 the way: p or s (by PUBLISH or SPUBLISH)   2 the channel   3 for how many ms
-- Returns  known | new: whether it was among the watchers until now. If it was not, it may have missed something.
-- Atomic, because two watchers who begin at once must not overwrite each other.
local ms = string.sub(now, 1, 13)
local others, answer = '', 'new'
for line, ends, channel in string.gmatch(call('GET', KEYS[1]) or '', '((%d+) %a (%S+)\n)') do
	if channel == ARGV[2] then
		answer = ends > ms and 'known' or 'new'
	elseif ends > ms then
		others = others .. line
	end
end
local me = string.format('%013.0f', ms + ARGV[3]) .. ' ' .. ARGV[1] .. ' ' .. ARGV[2] .. '\n'
call('SET', KEYS[1], others .. me, 'PX', ARGV[3])
return answer
