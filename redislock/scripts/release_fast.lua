-- release, the two next common answers: the lock is a hash with this one holder stored as text, and nobody waits or so is the
-- head of the queue. See text for the positions.
if not ARGV[2] and not known[1] then
	local f = call('HMGET', KEYS[1], 'h', 'a', 'z', 'k')
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
		local id, tail, way, claim, ttl, want, channel
		if w and string.sub(w, 1, 3) == 'P1 ' and string.sub(w, 4, 16) > ms and (queue[2] or tonumber(f[3]) == second) then
			id, tail, way, claim, ttl, want, channel = string.match(w, '^(%S+) ((%a) (%d+) (%d+) %d+ (%d+) (%S+) .*)$', 35)
		end
		local lately = id and string.sub(w, 4, 16) - ttl + claim > tonumber(ms) -- as heard of presence
		if id and not lately and way == 'P' then
			local prefix, process = string.match(channel, '^(.*)push:(%w+)$')
			lately = prefix and tonumber(call('ZSCORE', prefix .. 'alive', process) or 0) > tonumber(ms)
		end
		-- Who is next after that one, and asks rarely, is to hear of the claim: the general part tells it. See drain of rules.
		local after = queue[2]
		if after then
			local alive, asks, lasts = string.match(after, '^P1 (%d+) %d+ %S+ P (%d+) (%d+) ')
			if string.sub(after, 1, 3) ~= 'P1 ' or alive and alive - lasts + asks <= tonumber(ms) then
				lately = false
			end
		end
		if lately then
			local token, last, before = now, now, known[2]
			if before and before >= now then
				token, want = string.format('%.0f', before + 1), '1'
				last = token
			elseif want ~= '1' then
				last = string.format('%.0f', now + want - 1)
			end
			call('PEXPIRE', KEYS[1], '450000') -- QUEUE_LASTS of lock; before the others: see save there
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
			known[2] = last
		end
	end
end
