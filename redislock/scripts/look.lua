-- look: tells operators about one lock. It changes nothing.
--
-- KEYS  1 the lock
-- Returns  JSON: {"v": version, "now": us, "limit": "", "thin": "the string" or absent, "lasts": ms, "holds": [[...]],
--          "waiters": [[...]]}, with lists as lock describes them; empty if the lock is not in use.
local lasts = call('PTTL', KEYS[1])
local thin = call('MGET', KEYS[1])[1]
if thin then
	return cjson.encode({v = string.match(thin, '^(%S+) '), now = now, lasts = lasts, thin = thin})
end
local f = call('HMGET', KEYS[1], 'v', 'h', 'l', 'a', 'z', 'e')
if not f[1] then
	return lasts == -2 and '' or cjson.encode({now = now}) -- another program's hash
end
if f[1] ~= '1' and f[1] ~= '2' then
	return cjson.encode({v = f[1]})
end
local holds = readHolds(f[2])
local ends = f[1] == '2' and call('ZRANGE', f[6], 0, -1, 'WITHSCORES') or {}
for i = 1, #ends, 2 do -- the crowd, see crowd
	local packed = call('HGET', KEYS[1], 's:' .. ends[i])
	if packed then
		local meta = string.sub(packed, 8, 7 + string.sub(packed, 2, 7))
		local h = cmsgpack.unpack(string.sub(packed, 8 + #meta))
		h[23], h[21], h[8] = tonumber(string.sub(packed, 1, 1)), tonumber(ends[i + 1]), meta
		holds[#holds + 1] = h
	end
end
if ends[1] then -- in the order of their grants, and of those of one instant as they had asked
	table.sort(holds, function(a, b) return a[24] < b[24] or a[24] == b[24] and a[9] < b[9] end)
end
-- gone reports whether a waiter is dead, as presence has it.
local ms, speaks = math.floor(tonumber(now) / 1000), {}
local function gone(w)
	if w[10] ~= 'P' or w[14] - w[12] + 2.5 * w[11] > ms then
		return w[14] <= ms
	end
	if speaks[w[7]] == nil then
		local prefix, process = string.match(w[7], '^(.*)push:(%w+)$')
		speaks[w[7]] = prefix and tonumber(call('ZSCORE', prefix .. 'alive', process) or 0) or 0
	end
	return speaks[w[7]] + 3000 <= ms
end
local waiters = {}
for n = tonumber(f[4]), f[5] - 1 do
	local packed = call('HGET', KEYS[1], 'q:' .. n)
	if packed then
		local w = readWaiter(packed)
		if not gone(w) then
			waiters[#waiters + 1] = w
		end
	end
end
return cjson.encode({v = f[1], now = now, limit = f[3], holds = holds, waiters = waiters})
