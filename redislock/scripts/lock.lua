-- lock: the weighted, leased queue. The scripts that change a lock include it after clock and text, and set before: known = {the
-- lock's string or false, the slot's floor or false, the tombstone of the ID that asks or false}.
--
-- A lock is a string while it is thin: 1 ID TOKEN SINCE PASS WAY CLAIM TTL LEASE TOKENS CHANNEL META. Otherwise it is a hash: v the
-- version of this format, h the holds that are not of the crowd (MessagePack: a list of lists; or text), l the limit once a request
-- has brought one, a and z the first and the next number of the queue, k how many named owners queue, q:N the waiter with number N
-- (MessagePack: a list; or text), w:ID that number, c:OWNER how many requests of that named owner queue. Numbers between a and z
-- whose waiter has left are missing. A hash of version 2 has a crowd, see crowd; others are of version 1.
local VERSION, CROWDED = '1', '2'
local ms = math.floor(tonumber(now) / 1000)

-- Fields of a waiter. SINCE is when it asked, ALIVE is until when its last heartbeat counts, WAY how it is pushed to, CLAIM how many ms a pushed
-- grant lasts unclaimed, TTL how many ms a heartbeat counts, MISSED how many pushed grants it has let pass, BESIDE the ID of
-- the hold beside which it asks, or empty, DELAY how many ms nobody gets in after a loss.
local ID, OWNER, MODE, WEIGHT, WANT, LEASE, CHANNEL, META, SINCE = 1, 2, 3, 4, 5, 6, 7, 8, 9
local WAY, CLAIM, TTL, MISSED, ALIVE, BESIDE, DELAY = 10, 11, 12, 13, 14, 15, 16
-- Fields of a hold, beyond those of the waiter that it was. GROUP is the ID of the first hold of its owner's, GRANTED
-- the instant of the grant. NEWEST, if there, is TOKEN, TOKENS and NONCE of a later grant to the same owner, an upgrade:
-- they are the lock's, also when that hold has ended.
local GROUP, TOKEN, TOKENS, NONCE, UNTIL, PASS, STATE, GRANTED, NEWEST = 17, 18, 19, 20, 21, 22, 23, 24, 25
-- States of a hold: held, pushed and not yet claimed, released but kept from others for a while, and lost but kept from them.
local HELD, CLAIMED, KEPT, DELAYED = 0, 1, 2, 3

-- A queue's key lasts this long without any call: as long as a place for which a process speaks.
local QUEUE_LASTS = 450000
-- A pushed grant that was not claimed goes back to the head of the queue so often, then to its end.
local PATIENCE = 2
local MOST_TOKENS = 65536

-- What one run does at most, so that none keeps others waiting for long: how many it lets in, how many ended holds of a crowd it
-- clears, and how many waiters it looks at. Whoever is next is told to ask, which is the next run.
local MOST_GRANTS, MOST_ENDED, MOST_STEPS = 40, 250, 1000

local floor, self = known[2], ''
local holds, limit, first, after, named = {}, '', 0, 0, 0
local form = 'none' -- in which form the lock is stored: none, thin, hash
local minted, changed, ended = false, false, false
local cache, dirty, pushes = {}, {}, {} -- waiters by number; fields to write, false to delete; what to tell whom
local granted -- the hold that self got in this run
local inside, permits, arrives = 0, 0, false -- the crowd: how many holds, their permits, whether it has none stored
local members, moved = {}, {} -- its holds by ID, false if there is none; the IDs of those to write

-- load reads the lock. It returns the version of a format that this script does not know, or nothing.
local function load()
	if known[1] then
		local version = string.match(known[1], '^%S*')
		if version ~= VERSION then -- whatever follows
			return version
		end
		local p = split(known[1], 12)
		form = 'thin'
		-- The clock is read once more, and after: when the server pauses between two commands, the end must not seem earlier.
		local lasts, read = lasting(KEYS[1], p[9]), call('TIME')
		local ends = read[1] * 1000 + math.floor(read[2] / 1000) + 1 + lasts
		holds[1] = {p[2], '', 'x', 1, tonumber(p[10]), tonumber(p[9]), p[11], p[12], p[4], p[6], tonumber(p[7]), tonumber(p[8]),
			0, 0, '', 0, p[2], p[3], tonumber(p[10]), p[2], ends, tonumber(p[5]), HELD, p[4]}
		return
	end
	local f = call('HMGET', KEYS[1], 'v', 'h', 'l', 'a', 'z', 'k', 'n', 'u')
	if not f[1] then
		return
	end
	if f[1] ~= VERSION and f[1] ~= CROWDED then
		return f[1]
	end
	form = 'hash'
	holds, limit = readHolds(f[2]), f[3]
	first, after, named = tonumber(f[4]), tonumber(f[5]), tonumber(f[6])
	if f[1] == CROWDED then
		inside, permits = tonumber(f[7]), tonumber(f[8])
	end
end

-- field reads one field of the lock's hash as it is to be written.
local function field(name)
	local value = dirty[name]
	if value == nil and form == 'hash' then
		value = call('HGET', KEYS[1], name)
	end
	return value or nil
end

-- endsKey is the key of the sorted set that says when each hold of the crowd ends.
local function endsKey()
	local prefix, tag = string.match(KEYS[2], '^(.*)floor:({%l+})$')
	return prefix .. 'ends:' .. tag .. ':' .. string.sub(KEYS[1], #prefix + 1)
end

-- plain reports whether a waiter or hold can be stored as text.
local function plain(w)
	return w[OWNER] == '' and w[MODE] == 'x' and w[MISSED] == 0 and w[BESIDE] == '' and w[DELAY] == 0
end

-- instant gives a number of milliseconds the width that text needs.
local function instant(t)
	return string.format('%013.0f', t)
end

-- packHolds writes what readHolds reads.
local function packHolds()
	local h = holds[1]
	if #holds ~= 1 or inside > 0 or not plain(h) or h[STATE] == KEPT or h[NEWEST] then
		return cmsgpack.pack(holds)
	end
	return table.concat({'P1', instant(h[UNTIL]), h[STATE], h[ID], instant(h[ALIVE]), h[SINCE], h[GRANTED], h[TOKEN],
		h[TOKENS], h[PASS], h[WAY], h[CLAIM], h[TTL], h[LEASE], h[WANT], h[CHANNEL], h[META]}, ' ')
end

-- packWaiter writes what readWaiter reads.
local function packWaiter(w)
	if not plain(w) then
		return cmsgpack.pack(w)
	end
	return table.concat({'P1', instant(w[ALIVE]), w[SINCE], w[ID], w[WAY], w[CLAIM], w[TTL], w[LEASE], w[WANT], w[CHANNEL],
		w[META]}, ' ')
end

-- last is until when anybody in the lock may be.
local function last()
	local t = 0
	for _, h in ipairs(holds) do
		t = math.max(t, h[UNTIL] + (h[STATE] == HELD and h[DELAY] or 0), h[STATE] == CLAIMED and h[ALIVE] or 0)
		if h[STATE] == CLAIMED and h[MISSED] % 1 ~= 0 then -- its signal is to be found by those who wait for the next; see cond
			t = math.max(t, ms + QUEUE_LASTS)
		end
	end
	if inside > 0 then
		local latest = call('ZRANGE', endsKey(), 0, 0, 'REV', 'WITHSCORES')[2]
		t = math.max(t, tonumber(latest or 0))
		for id in pairs(moved) do
			local h = members[id]
			t = math.max(t, h and h[UNTIL] or 0, h and h[STATE] == CLAIMED and h[ALIVE] or 0)
		end
	end
	-- A queue outlives the holds: who waits finds it when they have ended, and with it what a waiter that has died had been
	-- signalled.
	return first < after and math.max(t, ms) + QUEUE_LASTS or t
end

-- readMember reads what packMember has written.
local function readMember(packed)
	local meta = string.sub(packed, 8, 7 + string.sub(packed, 2, 7))
	local h = cmsgpack.unpack(string.sub(packed, 8 + #meta))
	h[STATE], h[META] = tonumber(string.sub(packed, 1, 1)), meta
	return h
end

-- packMember writes a hold of the crowd: its state, the length of META in 6 digits, and META, which are all that a renewal looks
-- at, and the list without these. Its end is in the sorted set.
local function packMember(h)
	local rest = {}
	for i = ID, GRANTED do
		rest[i] = h[i]
	end
	rest[STATE], rest[UNTIL], rest[META] = 0, 0, ''
	return h[STATE] .. string.format('%06d', #h[META]) .. h[META] .. cmsgpack.pack(rest)
end

-- writeCrowd writes what has changed of the crowd.
local function writeCrowd()
	local key = endsKey()
	if arrives or inside == 0 then -- what an earlier crowd has left there, if anything, is over
		call('DEL', key)
		arrives = false
	end
	for id in pairs(moved) do
		local h = members[id]
		dirty['s:' .. id] = h and packMember(h)
		if h then
			call('ZADD', key, h[UNTIL], id)
		elseif inside > 0 then
			call('ZREM', key, id)
		end
	end
	local any = inside > 0
	dirty['n'], dirty['u'], dirty['e'] = any and inside, any and permits, any and key
	moved = {}
end

-- write writes back what has changed of the queue.
local function write()
	local sets, dels = {}, {}
	for field, value in pairs(dirty) do
		if value then
			sets[#sets + 1] = field
			sets[#sets + 1] = value
		else
			dels[#dels + 1] = field
		end
	end
	dirty = {}
	for i = 1, #dels, 1000 do -- a call takes a bounded number of arguments
		call('HDEL', KEYS[1], unpack(dels, i, math.min(#dels, i + 999)))
	end
	for i = 1, #sets, 1000 do
		call('HSET', KEYS[1], unpack(sets, i, math.min(#sets, i + 999)))
	end
end

-- save writes back what has changed. A server without memory refuses to write, unless the script has already done
-- something that needs none: so a lock that is held is never lost to that, and one that is free is not taken.
local function save()
	if changed and #holds == 0 and inside == 0 and first >= after then
		if next(moved) then
			call('DEL', endsKey())
		end
		if form ~= 'none' then
			call('DEL', KEYS[1])
		end
		form, dirty, moved = 'none', {}, {}
	elseif changed then
		local ends = last()
		if form == 'thin' then
			call('DEL', KEYS[1])
		elseif form == 'hash' then
			call('PEXPIREAT', KEYS[1], ends)
		end
		call('HSET', KEYS[1], 'v', inside > 0 and CROWDED or VERSION, 'h', packHolds(), 'l', limit, 'a', first, 'z', after,
			'k', named)
		if next(moved) then
			writeCrowd()
		end
		if inside > 0 then
			call('PEXPIREAT', endsKey(), ends)
		end
		write()
		if form ~= 'hash' then
			call('PEXPIREAT', KEYS[1], ends)
		end
		form = 'hash'
	end
	if minted then
		call('SET', KEYS[2], floor)
	end
	changed, minted = false, false
end

-- at returns the waiter with number n, or nil if it has left.
local function at(n)
	local w = cache[n]
	if w == nil and form == 'hash' then
		local packed = call('HGET', KEYS[1], 'q:' .. n)
		w = packed and readWaiter(packed)
		cache[n] = w
	end
	return w or nil
end

-- placeOf returns the number of the waiter with that ID, or nil.
local function placeOf(id)
	local n = field('w:' .. id) -- maybe of this run: its push was too long unclaimed, or a signal has gone on to it
	return n and tonumber(n)
end

-- count keeps how many requests of w's owner queue, if it is a named one.
local function count(w, by)
	if w[OWNER] ~= '' then
		named = named + by
		local n = tonumber(field('c:' .. w[OWNER]) or 0) + by
		dirty['c:' .. w[OWNER]] = n > 0 and n
	end
end

local function put(n, w)
	cache[n] = w
	dirty['q:' .. n], dirty['w:' .. w[ID]] = packWaiter(w), n
	changed = true
end

-- leave takes w out of the queue.
local function leave(n, w)
	cache[n] = false
	dirty['q:' .. n], dirty['w:' .. w[ID]] = false, false
	count(w, -1)
	while first < after and not at(first) do
		first = first + 1
	end
	changed = true
end

-- enter puts w into the queue as number n.
local function enter(n, w)
	count(w, 1)
	first, after = math.min(first, n), math.max(after, n + 1)
	put(n, w)
end
