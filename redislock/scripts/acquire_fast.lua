-- acquire: takes a lock, or queues for it, or says who is in the way. It is also a waiter's heartbeat and the claim of a
-- pushed grant, because the same ID asked again answers the same, refreshes its lease or its place, and ends what is over.
--
-- KEYS  1 the lock   2 the floor of tokens of the slot   3 the tombstone of this ID
-- ARGV  1 the ID   2 the lease in ms   3 how many tokens
--       4 tail: TOKENS LEASE CHANNEL META, as it is stored (META is JSON and may have spaces)
--       5 how: MODE WAY WEIGHT LIMIT CLAIM TTL OWNER. MODE is X (exclusive, no named owner), or x, s, u (exclusive, shared,
--         upgradeable; OWNER empty if it is not named). WAY is t (a try), l (as a try, but say that it would queue),
--         p or s (queue, and be told by PUBLISH or SPUBLISH). CLAIM is how many ms a pushed grant lasts unclaimed, TTL how
--         many ms a place in the queue lasts without a heartbeat.
-- Returns  G NOW TOKEN TOKENS NONCE LEASE          granted
--          Q NOW PLACE NEXT UNTIL TOKEN SINCE META queued; something may change NEXT ms from now; who is in the way
--          H NOW 0 0 UNTIL TOKEN SINCE META        held by another, and not queued
--          gone | broken                           this ID is over
--          stuck | conflict LIMIT | newer VERSION  refused for good
-- Atomic, because taking, minting the token and queueing are one step: nobody can be granted in between, and no waiter
-- is left out of the queue while the lock becomes free.
--
-- A lock with one anonymous, exclusive holder and no waiter is a string ("thin"): it costs one SET. Anything more makes
-- it a hash; see lock.lua. Here are the two common answers, without setting up what the others need: the lock is free, or
-- it is a hash with one exclusive holder whose lease lasts, and this request, which is anonymous and exclusive too, goes to
-- the end of the queue.
local known = call('MGET', KEYS[1], KEYS[2], KEYS[3])
if known[3] then
	return known[3]
end
local floor = known[2]
if not known[1] and string.byte(ARGV[5]) == 88 and not (floor and floor >= now) then
	local lock = '1 ' .. ARGV[1] .. ' ' .. now .. ' ' .. now .. ' 0 ' .. ARGV[4]
	if call('SET', KEYS[1], lock, 'PX', ARGV[2], 'NX') then -- NX: it may be a hash, which MGET does not show
		local n = tonumber(ARGV[3])
		if n == 1 then
			call('SET', KEYS[2], now)
		else
			call('SET', KEYS[2], string.format('%.0f', now + n - 1))
		end
		return 'G ' .. now .. ' ' .. now .. ' ' .. ARGV[3] .. ' ' .. ARGV[1] .. ' ' .. ARGV[2]
	end
end
if not known[1] and string.byte(ARGV[5]) == 88 then
	local f = call('HMGET', KEYS[1], 'v', 'h', 'a', 'z', 'w:' .. ARGV[1])
	local holds = f[1] == '1' and not f[5] and cmsgpack.unpack(f[2])
	local h = holds and #holds == 1 and holds[1]
	local way, claim, ttl = string.match(ARGV[5], '^X ([ps]) 1 0 (%d+) (%d+) ')
	local ms = math.floor(tonumber(now) / 1000)
	if h and h[3] == 'x' and h[2] == '' and h[19] > ms and h[1] ~= ARGV[1] and h[20] == 0 and way then
		local channel, meta = string.match(ARGV[4], '^%S+ %S+ (%S+) (.*)$')
		local lasts, n = tonumber(ttl), tonumber(f[4])
		local me = {ARGV[1], '', 'x', 1, tonumber(ARGV[3]), tonumber(ARGV[2]), channel, meta, now,
			way, tonumber(claim), lasts, 0, ms + lasts}
		call('HSET', KEYS[1], 'q:' .. n, cmsgpack.pack(me), 'w:' .. ARGV[1], n, 'z', n + 1)
		call('PEXPIREAT', KEYS[1], math.max(ms + 15000, h[19], h[14])) -- as long as lock.lua says
		return 'Q ' .. now .. ' ' .. n - f[3] + 1 .. ' ' .. h[19] - ms .. ' ' .. h[19] .. ' ' .. h[16] .. ' ' .. h[22] .. ' ' .. h[8]
	end
end
