-- crowd: shared holds that stand in fields of their own, so that one of thousands of readers or permits costs what one of a few
-- does. Included after lock.
--
-- A shared hold without a delay belongs to the crowd, unless its owner has an exclusive or upgradeable hold too. The hash has for
-- it: s:ID the hold (see packMember), n how many there are, u their permits. A sorted set of its
-- own, ends:{TAG}:KIND:NAME, has their IDs by the ends of their leases. What belongs to an owner with several of them:
-- g:GROUP (MessagePack) how many holds the group has, and TOKEN, TOKENS and NONCE of the newest grant to it; there is none while the
-- hold that founded it is alone. o:OWNER (MessagePack) how many live ones a named owner has, and the group of the latest.

-- member returns the hold of the crowd with that ID, or nil.
local function member(id)
	local h = members[id]
	if h == nil then
		local packed = inside > 0 and form == 'hash' and call('HGET', KEYS[1], 's:' .. id)
		h = packed and readMember(packed)
		if h then
			h[UNTIL] = tonumber(call('ZSCORE', endsKey(), id)) or ms + h[LEASE] -- not known: as in mend
		end
		members[id] = h
	end
	return h or nil
end

-- band is what the crowd knows of a group: {how many holds, TOKEN, TOKENS, NONCE}, or nil if none of it is in the crowd.
local function band(group)
	local packed = field('g:' .. group)
	if packed then
		return cmsgpack.unpack(packed)
	end
	local founder = member(group)
	if founder and founder[GROUP] == group then
		return {1, founder[TOKEN], founder[TOKENS], founder[NONCE]}
	end
end

local function setBand(group, b)
	dirty['g:' .. group], changed = b[1] > 0 and cmsgpack.pack(b), true
end

-- crowdOf returns the group of the live holds that a named owner has in the crowd, or nil.
local function crowdOf(owner)
	local packed = inside > 0 and owner ~= '' and field('o:' .. owner)
	return packed and cmsgpack.unpack(packed)[2] or nil
end

-- live reports whether h is its owner's still.
local function live(h)
	return h[STATE] < KEPT
end

-- own counts the live holds of a named owner.
local function own(h, by)
	if h[OWNER] ~= '' then
		local packed = field('o:' .. h[OWNER])
		local n = (packed and cmsgpack.unpack(packed)[1] or 0) + by
		dirty['o:' .. h[OWNER]] = n > 0 and cmsgpack.pack({n, h[GROUP]})
	end
end

-- mix lets h into the crowd.
local function mix(h)
	local b = band(h[GROUP]) -- also of a group that it has founded and comes back to, when its claim was not heard
	if b then
		setBand(h[GROUP], {b[1] + 1, h[TOKEN], h[TOKENS], h[NONCE]})
	end
	own(h, 1)
	arrives = arrives or inside == 0
	inside, permits, changed = inside + 1, permits + h[WEIGHT], true
	members[h[ID]], moved[h[ID]] = h, true
end

-- part takes h out of the crowd.
local function part(h)
	local packed = field('g:' .. h[GROUP])
	if packed then
		local b = cmsgpack.unpack(packed)
		b[1] = b[1] - 1
		setBand(h[GROUP], b)
	end
	if live(h) then
		own(h, -1)
	end
	inside, permits, changed = inside - 1, permits - h[WEIGHT], true
	members[h[ID]], moved[h[ID]] = false, true
end

-- touch says that h has changed, whether it is of the crowd or not.
local function touch(h)
	changed = true
	if members[h[ID]] == h then
		moved[h[ID]] = true
	end
end

local sooner = false -- whether something ends sooner now than those who wait have been told

-- keepOut has a hold that was released keep others out for a while.
local function keepOut(h, lasts)
	if members[h[ID]] == h then
		own(h, -1)
	end
	h[STATE], h[UNTIL], ended, sooner = KEPT, ms + lasts, true, true
	touch(h)
end

-- soonest is when the first hold ends, or nil if nobody holds.
local function soonest()
	local t = inside > 0 and tonumber(call('ZRANGE', endsKey(), 0, 0, 'WITHSCORES')[2]) or nil
	for _, h in ipairs(holds) do
		t = math.min(t or h[UNTIL], h[UNTIL])
	end
	return t
end

-- lapsed returns those of the crowd that are over, or the first of them, in the order in which they had asked.
local function lapsed()
	local list = {}
	for _, id in ipairs(call('ZRANGE', endsKey(), '-inf', ms, 'BYSCORE', 'LIMIT', 0, MOST_ENDED)) do
		list[#list + 1] = member(id)
	end
	table.sort(list, function(a, b) return a[SINCE] < b[SINCE] end)
	return list
end

-- mend makes the sorted set anew if the server has lost it. When its holds end is not known then: after their whole lease.
local function mend()
	if call('ZCARD', endsKey()) == inside then
		return
	end
	inside, permits, arrives = 0, 0, true
	local all = call('HGETALL', KEYS[1])
	for i = 1, #all, 2 do
		if string.sub(all[i], 1, 2) == 's:' then
			local h = readMember(all[i + 1])
			h[UNTIL], members[h[ID]], moved[h[ID]] = ms + h[LEASE], h, true
			inside, permits, changed = inside + 1, permits + h[WEIGHT], true
		end
	end
end
