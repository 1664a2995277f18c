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
local f = call('HMGET', KEYS[1], 'v', 'h', 'l', 'a', 'z')
if not f[1] then
	return ''
end
if f[1] ~= '1' then
	return cjson.encode({v = f[1]})
end
local waiters = {}
for n = tonumber(f[4]), f[5] - 1 do
	local packed = call('HGET', KEYS[1], 'q:' .. n)
	if packed then
		waiters[#waiters + 1] = readWaiter(packed)
	end
end
return cjson.encode({v = f[1], now = now, limit = f[3], holds = readHolds(f[2]), waiters = waiters})
