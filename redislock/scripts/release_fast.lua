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
-- one holder, and nobody waits or the head of the queue is exclusive too. What numbers stand for is said in lock.lua.
if ARGV[2] == '' and ARGV[4] == '0' then
	local known = call('MGET', KEYS[1], KEYS[2])
	if known[1] and string.sub(known[1], 1, #ARGV[1] + 3) == '1 ' .. ARGV[1] .. ' ' then
		call('DEL', KEYS[1])
		return 'ok'
	end
	local f = known[1] and {} or call('HMGET', KEYS[1], 'v', 'h', 'a', 'z', 'k')
	local holds = f[1] == '1' and f[5] == '0' and cmsgpack.unpack(f[2])
	local time = call('TIME')
	local now = time[1] .. string.sub('00000' .. time[2], -6)
	local ms = math.floor(tonumber(now) / 1000)
	if holds and #holds == 1 and holds[1][1] == ARGV[1] and holds[1][21] ~= 2 and holds[1][19] > ms then
		if f[3] == f[4] then
			call('DEL', KEYS[1])
			return 'ok'
		end
		local place, packed = 'q:' .. f[3], nil
		packed = call('HGET', KEYS[1], place)
		local w = packed and cmsgpack.unpack(packed)
		if w and w[3] == 'x' and w[14] > ms then
			local floor, n = now, math.max(1, math.min(w[5], 65536))
			if known[2] and known[2] >= now then
				floor, n = string.format('%.0f', known[2] + 1), 1
			end
			w[15], w[16], w[17], w[18], w[19], w[20], w[21], w[22] = w[1], floor, n, w[1], ms + w[11], 0, 1, now
			call('PEXPIREAT', KEYS[1], math.max(ms + 15000, w[19])) -- before the others: see save
			call('HDEL', KEYS[1], place, 'w:' .. w[1])
			call('HSET', KEYS[1], 'h', cmsgpack.pack({w}), 'a', f[3] + 1)
			call('SET', KEYS[2], n == 1 and floor or string.format('%.0f', floor + n - 1))
			local text = 'G ' .. w[1] .. ' ' .. now .. ' ' .. floor .. ' ' .. n .. ' ' .. w[1] .. ' ' .. w[11]
			local heard
			if w[10] == 's' then
				redis.pcall('SPUBLISH', w[7] .. ':' .. string.match(KEYS[2], '{.-}'), text)
			else
				heard = redis.pcall('PUBLISH', w[7], text)
			end
			if heard ~= 0 then
				return 'ok'
			end
			-- It has reached nobody: as it was, for the general part, which looks for another waiter.
			call('HSET', KEYS[1], 'h', f[2], 'a', f[3], place, packed, 'w:' .. w[1], f[3])
		end
	end
end
