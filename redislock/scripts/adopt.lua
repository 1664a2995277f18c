-- adopt: gives a hold to the request of another client, in one step. From then on the hold has that ID, with a new token, and the
-- ID that it had is over.
--
-- KEYS  1 the lock   2 the floor of tokens of the slot   3 the tombstone of the new ID   4 that of the ID which the hold has
-- ARGV  1 to 4 as for acquire, of the new ID   5 the ID that the hold has
-- Returns  G NOW TOKEN TOKENS NONCE LEASE | gone | adopted | broken (the new ID is over) | lost REASON (see release) |
--          nested (the owner has others beside it, or a name) | newer VERSION
-- Atomic, because who gives the hold away must not renew it any more when another has it. The mode, the permits and the delay stay.
local tail, lease = split(ARGV[4], 7), tonumber(ARGV[2])
local from, answer, told = find(ARGV[5]), nil, nil
local mine = find(ARGV[1])

-- alone reports whether h is all that its owner has of the lock.
local function alone(h)
	local b = band(h[GROUP])
	for _, other in ipairs(holds) do
		if other ~= h and other[GROUP] == h[GROUP] then
			return false
		end
	end
	return h[OWNER] == '' and (not b or b[1] <= (members[h[ID]] == h and 1 or 0))
end

if known[3] then
	answer = known[3]
elseif mine and live(mine) then -- a copy
	mine[UNTIL] = math.max(mine[UNTIL], ms + lease)
	touch(mine)
	answer = 'G ' .. now .. ' ' .. mine[TOKEN] .. ' ' .. mine[TOKENS] .. ' ' .. mine[NONCE] .. ' ' .. ARGV[2]
elseif not from or not live(from) then
	answer = 'lost ' .. (from and 'gone' or why(call('GET', KEYS[4])))
elseif not alone(from) then
	answer = 'nested'
else
	told = {from[ID], from[CHANNEL], from[LEASE]}
	if string.sub(from[META], 1, 7) == '{"r":2,' then -- nobody had it, so it was short on purpose
		from[UNTIL] = 0
	end
	drop(from)
	local token, tokens = mint(tonumber(ARGV[3]))
	local h = {unpack(from, 1, GRANTED)}
	h[ID], h[WANT], h[LEASE], h[CHANNEL], h[META], h[SINCE] = ARGV[1], tonumber(ARGV[3]), lease, tail[6], tail[7], now
	h[WAY], h[CLAIM], h[TTL], h[MISSED], h[ALIVE], h[BESIDE] = tail[1], tonumber(tail[2]), tonumber(tail[3]), 0, ms, ''
	h[GROUP], h[TOKEN], h[TOKENS], h[NONCE], h[PASS], h[STATE], h[GRANTED] = ARGV[1], token, tokens, ARGV[1], 0, HELD, now
	h[UNTIL] = math.max(from[UNTIL], ms + lease)
	if h[MODE] == 's' and h[DELAY] == 0 then
		mix(h)
	else
		holds[#holds + 1] = h
	end
	changed = true
	answer = 'G ' .. now .. ' ' .. token .. ' ' .. tokens .. ' ' .. ARGV[1] .. ' ' .. ARGV[2]
end
if ended then -- an upgrade of the hold may have waited
	drain({})
end
finish()
if told then
	bury(KEYS[4], 'adopted', math.max(told[3], lease, 1000)) -- after finish, for a server without memory: see save
	redis.pcall('PUBLISH', told[2], 'M ' .. told[1] .. ' ' .. now)
end
return answer
