-- multi: takes several locks that are free, or none of them.
--
-- KEYS  for each: the lock, the floor of tokens of its slot, the tombstone of its ID
-- ARGV  for each: the ID, the lease in ms, how many tokens, tail as for acquire
-- Returns  G NOW TOKEN TOKENS TOKEN TOKENS ...       all are granted; first token and number of each
--          K                                         all of these IDs are holds: ask acquire what they were granted
--          H INDEX NOW 0 0 UNTIL TOKEN SINCE META    that lock is held by another, as for acquire
--          U                                         a lock is in a state that only acquire can judge
--          gone | broken | newer VERSION             one of the IDs is over; as for acquire
-- Atomic, because looking and taking are one step. It looks at all before it writes anything, and nothing that it then writes
-- can fail, unless it is the first: a server without memory refuses that, and only that.
--
-- It takes what is free without a doubt: whose key does not exist. Locks with somebody in, or in the queue, are left as they
-- are; that they may have ended is for acquire to find out, which has what that needs.
local n = #ARGV / 4
local known = call('MGET', unpack(KEYS))
for i = 1, n do
	if known[3 * i] then
		return known[3 * i]
	end
end

-- Positions as in lock.
local VERSION, CROWDED, ID, CHANNEL, META, TOKEN, UNTIL, PASS, STATE, GRANTED, KEPT = '1', '2', 1, 7, 8, 18, 21, 22, 23, 24, 2
local ms = math.floor(tonumber(now) / 1000)

-- read returns the holds of lock i, or nothing if it is free; or the version that this script does not know.
local function read(i)
	local key, thin = KEYS[3 * i - 2], known[3 * i - 2]
	if thin then
		local version = string.match(thin, '^%S*')
		if version ~= VERSION then
			return nil, version
		end
		local p = split(thin, 12)
		return {{[ID] = p[2], [CHANNEL] = p[11], [META] = p[12], [TOKEN] = p[3], [UNTIL] = ms + lasting(key, p[9]),
			[PASS] = tonumber(p[5]), [STATE] = 0, [GRANTED] = p[4], thin = true}}
	end
	local f = call('HMGET', key, 'v', 'h')
	if f[1] and f[1] ~= VERSION and f[1] ~= CROWDED then
		return nil, f[1]
	end
	return f[1] and readHolds(f[2])
end

local mine, busy, unsure = 0, nil, false
for i = 1, n do
	local holds, version = read(i)
	if version then
		return 'newer ' .. version
	end
	local inside
	for _, h in ipairs(holds or {}) do
		if h.thin or h[UNTIL] > ms then
			inside = h
		end
	end
	if inside and inside[ID] == ARGV[4 * i - 3] and inside[STATE] < KEPT then
		mine = mine + 1
	elseif inside then
		local h = inside
		local token = h[PASS] == 0 and h[TOKEN] or string.format('%.0f', h[TOKEN] + h[PASS])
		busy = busy or table.concat({'H', i, now, '0 0', h[UNTIL], token, h[GRANTED], h[META]}, ' ')
		if string.sub(h[META], 1, 5) == '{"r":' and h[STATE] < KEPT then -- as recall of rules
			redis.pcall('PUBLISH', h[CHANNEL], 'W ' .. h[ID] .. ' ' .. now)
		end
	elseif holds then
		unsure = true
	end
end
if mine > 0 then
	return mine == n and 'K' or 'gone' -- they were granted together
elseif busy or unsure then
	return busy or 'U'
end

local floors, answer = {}, {'G', now}
for i = 1, n do
	local id, lease, tokens, tail = ARGV[4 * i - 3], ARGV[4 * i - 2], ARGV[4 * i - 1], ARGV[4 * i]
	local floor, at = known[3 * i - 1], KEYS[3 * i - 1]
	local token = now
	if floor and floor >= now then -- as mint of rules
		token, tokens = string.format('%.0f', floor + 1), '1'
		tail = string.gsub(tail, '^(%a %d+ %d+ %d+) %d+', '%1 1', 1)
	end
	call('SET', KEYS[3 * i - 2], '1 ' .. id .. ' ' .. token .. ' ' .. now .. ' 0 ' .. tail, 'PX', lease)
	local last = tokens == '1' and token or string.format('%.0f', token + tokens - 1)
	if not floors[at] or floors[at] < last then -- several locks of one slot begin with one token
		floors[at] = last
	end
	answer[#answer + 1] = token
	answer[#answer + 1] = tokens
end
for at, last in pairs(floors) do
	call('SET', at, last)
end
return table.concat(answer, ' ')
