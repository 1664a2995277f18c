-- cond: who waits for the condition of a mutex. Included after lock, before rules.
--
-- They stand in a key of their own, which is a hash: v the version of this format, a and z the first and the next number,
-- q:N the waiter with number N as in a lock's queue, w:ID that number. Numbers whose waiter has left are missing. A signal moves
-- the first who lives to the lock's queue, where half of MISSED says that it carries a signal: if it is dropped before it has the
-- lock, the signal goes on.
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

-- later returns the version of a condition whose format this script does not know, or nothing.
local function later()
	local version = call('HGET', condition(), 'v')
	return version and version ~= VERSION and version or nil
end

-- skip says that the numbers from a on are waited for, of which the first have left; without any, there is no condition.
local function skip(key, a, z)
	local n = a
	while n < z and not call('HGET', key, 'q:' .. n) do
		n = n + 1
	end
	if n < z then
		call('HSET', key, 'a', n)
	else
		call('DEL', key)
	end
end

-- unpark takes the waiter with that ID away, if it is there.
local function unpark(id)
	local key = condition()
	local f = key and call('HMGET', key, 'v', 'a', 'z', 'w:' .. id)
	if f and f[1] == VERSION and f[4] then
		call('HDEL', key, 'q:' .. f[4], 'w:' .. id)
		skip(key, tonumber(f[2]), tonumber(f[3]))
	end
end

-- wake moves the first who lives, of those whose number is before that one if it is given, to the end of the lock's queue. It
-- reports whether there was one.
local function wake(before)
	local key = condition()
	local f = call('HMGET', key, 'v', 'a', 'z')
	if f[1] ~= VERSION then
		return false
	end
	local last = math.min(before or f[3], tonumber(f[3])) - 1
	for n = tonumber(f[2]), last do
		local packed = call('HGET', key, 'q:' .. n)
		local w = packed and readWaiter(packed)
		if w then
			call('HDEL', key, 'q:' .. n, 'w:' .. w[ID])
		end
		if w and not dead(w) then
			skip(key, n + 1, tonumber(f[3]))
			w[MISSED], w[SINCE] = SIGNAL, now
			enter(after, w)
			return true
		end
	end
	skip(key, math.max(tonumber(f[2]), last + 1), tonumber(f[3]))
	return false
end

-- passOn is for a waiter, or a hold that was pushed, which is dropped.
local function passOn(w)
	if w[MISSED] % 1 == SIGNAL then
		wake()
	end
end
