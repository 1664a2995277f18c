end
-- requeue, the common answer: the lock is a hash with the hold to give stored as text, others wait, and the request joins
-- them. It takes its place first: what is published must come after everything is written.
if not known[1] and not known[3] and ARGV[5] == 'X' and ARGV[7] == '' then
	local f = call('HMGET', KEYS[1], 'h', 'a', 'z', 'w:' .. ARGV[1])
	local h, number, ms = f[1], f[3], string.sub(now, 1, 13)
	local ttl = string.match(ARGV[4], '^[pPs] %d+ (%d+) ')
	if h and ttl and string.sub(h, 1, 3) == 'P1 ' and string.sub(h, 4, 16) > ms
		and string.sub(h, 20, 20 + #ARGV[6]) == ARGV[6] .. ' ' and f[2] ~= number and not f[4] then
		call('PEXPIRE', KEYS[1], math.max(450000, call('PTTL', KEYS[1]))) -- QUEUE_LASTS of lock; before the others: see save there
		call('HSET', KEYS[1], 'q:' .. number, 'P1 ' .. ms + ttl .. ' ' .. now .. ' ' .. ARGV[1] .. ' ' .. ARGV[4],
			'w:' .. ARGV[1], number, 'z', number + 1)
		if give({ARGV[6]}) then
			local lock = call('HMGET', KEYS[1], 'h', 'a')
			local id, channel = string.match(lock[1], '^P1 %d+ %d (%S+) .- (%S+) {"r":')
			if id and lock[2] == number then -- as recall of rules, unless others stand before it, as in acquire_fast
				redis.pcall('PUBLISH', channel, 'W ' .. id .. ' ' .. now)
			end
			return 'W ' .. now .. ' ' .. lock[2] .. ' ' .. number .. ' ' .. lock[1]
		end
		-- Whoever is next has to be looked for by the general part, which begins with the lock as it was.
		call('HDEL', KEYS[1], 'q:' .. number, 'w:' .. ARGV[1])
		call('HSET', KEYS[1], 'z', number)
	end
end
