-- cond: who waits for the condition of a mutex. Included after lock, before rules.
--
-- They stand in a key of their own, which is a hash: v the version of this format, a and z the first and the next number,
-- q:N the waiter with number N as in a lock's queue, w:ID that number. A signal moves the first who lives to the lock's
-- queue, where half of MISSED says that it carries a signal: if it is dropped before it has the lock, the signal goes on.
local SIGNAL = 0.5

-- condition is the name of that key, or nothing if the lock has no condition.
local function condition()
	local prefix, tag = string.match(KEYS[2], '^(.*)floor:({%l+})$')
	if string.sub(KEYS[1], #prefix + 1, #prefix + 6) == 'mutex:' then
		return prefix .. 'cond:' .. tag .. ':' .. string.sub(KEYS[1], #prefix + 7)
	end
end

-- parkedAt returns the number of the waiter with that ID, or nothing.
local function parkedAt(id)
	return call('HGET', condition(), 'w:' .. id)
end

-- park puts w at the end.
local function park(w)
	local key = condition()
	local f = call('HMGET', key, 'a', 'z')
	local n = f[2] or '0'
	call('HSET', key, 'v', VERSION, 'a', f[1] or n, 'z', n + 1, 'q:' .. n, packWaiter(w), 'w:' .. w[ID], n)
	call('PEXPIRE', key, QUEUE_LASTS)
end

-- unpark takes the waiter with that ID away. It reports whether it was there.
local function unpark(id)
	local key = condition()
	local n = key and call('HGET', key, 'w:' .. id)
	return n and call('HDEL', key, 'q:' .. n, 'w:' .. id) > 0
end

-- wake moves the first who lives to the end of the lock's queue. It reports whether there was one.
local function wake()
	local key = condition()
	local f = call('HMGET', key, 'a', 'z')
	if not f[1] then
		return false
	end
	for n = tonumber(f[1]), f[2] - 1 do
		local packed = call('HGET', key, 'q:' .. n)
		local w = packed and readWaiter(packed)
		if w then
			call('HDEL', key, 'q:' .. n, 'w:' .. w[ID])
		end
		if w and w[ALIVE] > ms then
			call('HSET', key, 'a', n + 1)
			w[MISSED], w[SINCE] = SIGNAL, now
			enter(after, w)
			return true
		end
	end
	call('DEL', key)
	return false
end

-- passOn is for a waiter, or a hold that was pushed, which is dropped.
local function passOn(w)
	if w[MISSED] % 1 == SIGNAL then
		wake()
	end
end
