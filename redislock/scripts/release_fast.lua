local call = redis.call
-- release: ends a hold, shortens it, or takes away whatever a request has left, and grants to who waits.
--
-- KEYS  1 the lock   2 the floor of tokens of the slot   3 the tombstone of this ID
-- ARGV  1 the ID   2 empty, or u (undo: also leave the queue, and refuse late copies), or r (a copy of the acquire may be
--         under way: refuse it)   3 how many ms a tombstone lasts   4 how many ms to keep others out, 0 for not at all
-- Returns  ok | lost REASON | newer VERSION. REASON is taken (another is in), broken, gone (released or undone), expired.
-- Atomic, because comparing the ID and freeing are one step, and so are freeing and granting to the next: nobody gets in
-- between, and no waiter is forgotten.
--
-- Here are the three common answers, without setting up what the others need: the lock is thin, or it is a hash with this
-- one holder stored as text, and nobody waits or so is the head of the queue. See text for the positions.
if ARGV[2] == '' and ARGV[4] == '0' then
	local known = call('MGET', KEYS[1], KEYS[2])
	if known[1] and string.sub(known[1], 1, #ARGV[1] + 3) == '1 ' .. ARGV[1] .. ' ' then
		call('DEL', KEYS[1])
		return 'ok'
	end
	local f = known[1] and {} or call('HMGET', KEYS[1], 'h', 'a', 'z', 'k')
	local time = call('TIME')
	local now = time[1] .. string.sub('00000' .. time[2], -6)
	local h, ms = f[1], string.sub(now, 1, 13)
	if h and string.sub(h, 1, 3) == 'P1 ' and string.sub(h, 20, 20 + #ARGV[1]) == ARGV[1] .. ' '
		and string.sub(h, 4, 16) > ms and f[4] == '0' then
		if f[2] == f[3] then
			call('DEL', KEYS[1])
			return 'ok'
		end
		local place, second = 'q:' .. f[2], f[2] + 1
		local queue = call('HMGET', KEYS[1], place, 'q:' .. second)
		local w = queue[1]
		-- Behind the head there must be no gap: a is to be the number of a waiter, or z when nobody waits.
		if w and string.sub(w, 1, 3) == 'P1 ' and string.sub(w, 4, 16) > ms and (queue[2] or tonumber(f[3]) == second) then
			local id, tail, way, claim, want, channel = string.match(w, '^(%S+) ((%a) (%d+) %d+ %d+ (%d+) (%S+) .*)$', 35)
			local token, last = now, now
			if known[2] and known[2] >= now then
				token, want = string.format('%.0f', known[2] + 1), '1'
				last = token
			elseif want ~= '1' then
				last = string.format('%.0f', now + want - 1)
			end
			call('PEXPIRE', KEYS[1], '15000') -- before the others: see save in lock
			call('HDEL', KEYS[1], place, 'w:' .. id)
			call('HSET', KEYS[1], 'h', 'P1 ' .. ms + claim .. ' 1 ' .. id .. string.sub(w, 3, 33) .. ' ' .. now .. ' ' .. token ..
				' ' .. want .. ' 0 ' .. tail, 'a', second)
			call('SET', KEYS[2], last)
			local text = 'G ' .. id .. ' ' .. now .. ' ' .. token .. ' ' .. want .. ' ' .. id .. ' ' .. claim
			local heard
			if way == 's' then
				redis.pcall('SPUBLISH', channel .. ':' .. string.match(KEYS[2], '{.-}'), text)
			else
				heard = redis.pcall('PUBLISH', channel, text)
			end
			if heard ~= 0 then
				return 'ok'
			end
			-- It has reached nobody: as it was, for the general part, which looks for another waiter.
			call('HSET', KEYS[1], 'h', h, 'a', f[2], place, w, 'w:' .. id, f[2])
		end
	end
end
