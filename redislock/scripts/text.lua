-- text: holds and waiters that are exclusive and anonymous may be stored as text, which costs less than MessagePack where
-- it matters most. Instants have a fixed width, so they are compared as strings and found by their position.
--
--   waiter  P1 ALIVE SINCE ID WAY CLAIM TTL LEASE WANT CHANNEL META
--   hold    P1 UNTIL STATE ID ALIVE SINCE GRANTED TOKEN TOKENS PASS WAY CLAIM TTL LEASE WANT CHANNEL META
--
-- These read them into the lists that lock describes.
local function split(s, n)
	local parts, from = {}, 1
	for i = 1, n - 1 do
		local at = string.find(s, ' ', from, true)
		parts[i] = string.sub(s, from, at - 1)
		from = at + 1
	end
	parts[n] = string.sub(s, from)
	return parts
end

-- lasting returns for how many ms more a thin lock lasts, which was asked for with that lease. A key whose time to live somebody has
-- removed (PERSIST) has no end: it lasts for its lease from now on, which is as long as its owner may rely on it, and longer if that
-- renews. So it neither ends beside its owner nor outlives it for ever.
local function lasting(key, lease)
	local lasts = call('PTTL', key)
	if lasts == -1 then
		lasts = tonumber(lease)
		call('PEXPIRE', key, lease)
	end
	return lasts
end

local function readWaiter(packed)
	if string.sub(packed, 1, 3) ~= 'P1 ' then
		return cmsgpack.unpack(packed)
	end
	local p = split(packed, 11)
	return {p[4], '', 'x', 1, tonumber(p[9]), tonumber(p[8]), p[10], p[11], p[3], p[5], tonumber(p[6]), tonumber(p[7]), 0,
		tonumber(p[2]), '', 0}
end

local function readHolds(packed)
	if string.sub(packed, 1, 3) ~= 'P1 ' then
		return cmsgpack.unpack(packed)
	end
	local p = split(packed, 17)
	return {{p[4], '', 'x', 1, tonumber(p[15]), tonumber(p[14]), p[16], p[17], p[6], p[11], tonumber(p[12]), tonumber(p[13]),
		0, tonumber(p[5]), '', 0, p[4], p[8], tonumber(p[9]), p[4], tonumber(p[2]), tonumber(p[10]), tonumber(p[3]), p[7]}}
end
