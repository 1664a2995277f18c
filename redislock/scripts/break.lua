-- break: ends all holds of the owner one of whose tokens is given, tells the holders, and grants to who waits.
--
-- KEYS  1 the lock   2 the floor of tokens of the slot   3 the tombstone of an empty ID, to which IDs are added
-- ARGV  1 the token
-- Returns  ok | free | H NOW 0 0 UNTIL TOKEN SINCE META (the token is not a current one) | newer VERSION
-- Atomic, because a renewal or release of these holds in between would act on what is being taken away.
local token, group, everybody = tonumber(ARGV[1]), nil, {unpack(holds)}
for _, id in ipairs(inside > 0 and call('ZRANGE', endsKey(), 0, -1) or {}) do
	everybody[#everybody + 1] = member(id)
end
for _, h in ipairs(everybody) do
	local b = members[h[ID]] == h and band(h[GROUP])
	local newest = b and {b[2], b[3]} or h[NEWEST] or {h[TOKEN], h[TOKENS]}
	if (token >= tonumber(h[TOKEN]) and token < h[TOKEN] + h[TOKENS]) or
		(token >= tonumber(newest[1]) and token < newest[1] + newest[2]) then
		group = h[GROUP]
	end
end
local told = {}
if group then
	for i = #everybody, 1, -1 do
		local h = everybody[i]
		if h[GROUP] == group then
			if h[STATE] == CLAIMED then
				passOn(h)
			end
			if live(h) then -- who kept it closed after a release has lost nothing
				told[#told + 1] = h
			end
			drop(h)
			if h[STATE] == HELD and h[DELAY] > 0 then
				h[STATE], h[UNTIL], sooner = DELAYED, ms + h[DELAY], true
				table.insert(holds, 1, h)
			end
		end
	end
end
if ended then
	drain({})
end
finish()
for _, h in ipairs(told) do
	bury(KEYS[3] .. h[ID], 'broken', math.max(h[LEASE], 1000)) -- after finish, for a server without memory: see save
	redis.pcall('PUBLISH', h[CHANNEL], 'B ' .. h[ID] .. ' ' .. now)
end
if group then
	return 'ok'
end
return #holds + inside == 0 and 'free' or 'H ' .. now .. ' 0 0 ' .. describe()
