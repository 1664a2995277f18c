-- break: ends all holds of the owner one of whose tokens is given, tells the holders, and grants to who waits.
--
-- KEYS  1 the lock   2 the floor of tokens of the slot   3 the tombstone of an empty ID, to which IDs are added
-- ARGV  1 the token   2 to 4 none at first; then what the run before has answered: where in the crowd to go on (see look), how
--       many to look at, and the owner's group if that was found
-- Returns  ok | free | H NOW 0 0 UNTIL TOKEN SINCE META (the token is not a current one) | newer VERSION |
--          more SCORE SIZE | more SCORE SIZE GROUP: ask again, with these
-- Atomic, because a renewal or release of these holds in between would act on what is being taken away.
local PAGE = 200 -- of a crowd in one run, so that none keeps others waiting for long
local token, from, size, group = tonumber(ARGV[1]), ARGV[2] or '-inf', tonumber(ARGV[3] or PAGE), ARGV[4]
local everybody, more = {unpack(holds)}, nil
local ends = inside > 0 and call('ZRANGE', endsKey(), from, '+inf', 'BYSCORE', 'LIMIT', 0, size, 'WITHSCORES') or {}
for i = 1, #ends, 2 do
	everybody[#everybody + 1] = member(ends[i])
end
if #ends == 2 * size then -- the next page, as in look
	more = ends[#ends] .. ' ' .. (ends[#ends] == ends[2] and 2 * size or PAGE)
end

-- inCrowd is how many holds of the group the crowd has.
local function inCrowd()
	local b = band(group)
	return b and b[1] or 0
end

if not group then
	for _, h in ipairs(everybody) do
		local b = members[h[ID]] == h and band(h[GROUP])
		local newest = b and {b[2], b[3]} or h[NEWEST] or {h[TOKEN], h[TOKENS]}
		if (token >= tonumber(h[TOKEN]) and token < h[TOKEN] + h[TOKENS]) or
			(token >= tonumber(newest[1]) and token < newest[1] + newest[2]) then
			group = h[GROUP]
		end
	end
	local here = 0
	for _, h in ipairs(everybody) do
		here = here + (members[h[ID]] == h and h[GROUP] == group and 1 or 0)
	end
	if not group and more or group and here < inCrowd() then -- it may be on another page, or has others there
		if ended then
			drain({})
		end
		finish()
		return 'more ' .. (group and '-inf ' .. PAGE .. ' ' .. group or more)
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
if group and more and inCrowd() > 0 then -- others of the same owner are on further pages
	return 'more ' .. more .. ' ' .. group
elseif group then
	return 'ok'
end
return #holds + inside == 0 and 'free' or 'H ' .. now .. ' 0 0 ' .. describe()
