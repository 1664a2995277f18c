-- latch_set: sets the count of a latch whose count is zero.
--
-- KEYS  1 the latch   2 what was answered to this ID
-- ARGV  1 the ID   2 the count   3 for how many ms the answer is remembered
-- Returns  set | counting | newer VERSION
-- Atomic, because two who set at once must not both believe that they have.
--
-- A latch that counts is a hash without a time to live: v the version of this format, n the count, s the ID that has set it.
-- At zero there is no latch.
if call('PEXPIRE', KEYS[2], ARGV[3]) == 1 then
	return call('GET', KEYS[2])
end
local f = call('HMGET', KEYS[1], 'v', 's')
if f[1] and f[1] ~= '1' then
	return 'newer ' .. f[1]
end
if not f[1] then
	call('HSET', KEYS[1], 'v', '1', 'n', ARGV[2], 's', ARGV[1])
end
local answer = (not f[1] or f[2] == ARGV[1]) and 'set' or 'counting'
call('SET', KEYS[2], answer, 'PX', ARGV[3])
return answer
