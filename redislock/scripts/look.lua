-- look: tells operators about one lock. It changes nothing.
--
-- KEYS  1 the lock
-- ARGV  none for the first page; then the words of "more" of the page before
-- Returns  JSON: {"v": version, "now": us, "limit": "", "thin": "the string" or absent, "lasts": ms, "holds": [[...]],
--          "waiters": [[...]], "more": "SCORE SIZE NUMBER" or absent}, with lists as lock describes them; empty if the lock is not in
--          use. A page has SIZE of the holds and waiters, mostly 200. The holds that are not of the crowd come with the first, then the crowd by
--          the ends of its leases, from SCORE on; an empty SCORE says that it is done, and the waiters from NUMBER on follow. A hold comes
--          again, with its ID, if it is renewed between two pages, or has the last end of one.
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
-- One run tells of a bounded number, so that none keeps others waiting for long.
local PAGE, MOST_STEPS = 200, 1000
local from, size, more = ARGV[1] or '-inf', tonumber(ARGV[2] or PAGE), nil
local holds = from == '-inf' and readHolds(f[2]) or {}
local crowd = from ~= '' and f[1] == '2' and f[6] -- see crowd
local ends = crowd and call('ZRANGE', f[6], from, '+inf', 'BYSCORE', 'LIMIT', 0, size, 'WITHSCORES') or {}
for i = 1, #ends, 2 do
	local packed = call('HGET', KEYS[1], 's:' .. ends[i])
	if packed then
		local meta = string.sub(packed, 8, 7 + string.sub(packed, 2, 7))
		local h = cmsgpack.unpack(string.sub(packed, 8 + #meta))
		h[23], h[21], h[8] = tonumber(string.sub(packed, 1, 1)), tonumber(ends[i + 1]), meta
		holds[#holds + 1] = h
	end
end
local room = size - #ends / 2
if room <= 0 then
	-- The next page begins with the last end of this one, which others may have too; if all of it have, it has to be longer.
	local last = ends[#ends]
	more = last .. ' ' .. (last == ends[2] and 2 * size or PAGE) .. ' 0'
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
local waiters, n, after = {}, tonumber(from == '' and ARGV[3] or f[4]), tonumber(f[5])
local last = math.min(after, n + MOST_STEPS)
while not more and n < last and #waiters < room do
	local packed = call('HGET', KEYS[1], 'q:' .. n)
	if packed then
		local w = readWaiter(packed)
		if not gone(w) then
			waiters[#waiters + 1] = w
		end
	end
	n = n + 1
end
if not more and n < after then
	more = ' ' .. PAGE .. ' ' .. n -- the crowd is done
end
return cjson.encode({v = f[1], now = now, limit = f[3], holds = holds, waiters = waiters, more = more})
