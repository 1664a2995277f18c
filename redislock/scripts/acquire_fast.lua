-- acquire: takes a lock, or queues for it, or says who is in the way. It is also a waiter's heartbeat and the claim of a
-- pushed grant, because the same ID asked again answers the same, refreshes its lease or its place, and ends what is over.
--
-- KEYS  1 the lock   2 the floor of tokens of the slot   3 the tombstone of this ID   4 that of the hold beside, if BESIDE
-- ARGV  1 the ID   2 the lease in ms   3 how many tokens
--       4 tail: WAY CLAIM TTL LEASE TOKENS CHANNEL META, as it is stored (META is JSON and may have spaces). WAY is t (a
--         try), l (as a try, but say that it would queue), p or s (queue, and be told by PUBLISH or SPUBLISH), P (as p, and its
--         process speaks for it, see presence). CLAIM is how
--         many ms a pushed grant lasts unclaimed, TTL how many ms a place in the queue lasts without a heartbeat.
--       5 how: none, or X where others follow (exclusive, anonymous, on its own, no delay), or MODE WEIGHT LIMIT BESIDE OWNER:
--         x, s, u (exclusive, shared, upgradeable), in the same word for how many ms nobody gets in after a loss, if so; the
--         ID of the hold beside which it asks, empty if none; the owner's name, empty if it has none
-- Returns  G NOW TOKEN TOKENS NONCE LEASE          granted
--          G NOW                                   granted: the token is NOW, and the rest as was asked for
--          Q NOW PLACE NEXT UNTIL TOKEN SINCE META queued; something may change NEXT ms from now; who is in the way
--          W NOW FIRST NUMBER HOLD                 queued as that number, the head is FIRST; the hold as text stores it
--          H NOW 0 0 UNTIL TOKEN SINCE META        held by another, and not queued
--          L as H, to WAY l
--          gone | broken | adopted                 this ID is over
--          stuck | conflict LIMIT | newer VERSION  refused for good
--          lost REASON                             the hold beside which it asks is over
-- Atomic, because taking, minting the token and queueing are one step: nobody can be granted in between, and no waiter
-- is left out of the queue while the lock becomes free.
--
-- Whoever is the first in the queue or refused, and each heartbeat, has the process of who is in the way told, if that may keep
-- the lock when nobody holds it: see recall of rules.
--
-- A lock with one anonymous, exclusive holder and no waiter is a string ("thin"): it costs one SET. Anything more makes
-- it a hash; see lock. Here are the two common answers, without setting up what the others need: the lock is free, or it
-- is a hash with one exclusive holder whose lease lasts, and this request, which is anonymous and exclusive too, goes to
-- the end of the queue or keeps the place that it has there.
if known[3] then
	return known[3]
end
if not known[1] and not ARGV[5] then
	local token, tokens, tail = now, ARGV[3], ARGV[4]
	if known[2] and known[2] >= now then -- as mint of rules; often so with short holds, whose blocks are not used up
		token, tokens = string.format('%.0f', known[2] + 1), '1'
		tail = string.gsub(tail, '^(%a %d+ %d+ %d+) %d+', '%1 1', 1)
	end
	-- NX: it may be a hash, which MGET does not show. pcall: a server without memory refuses this also when it is one, and
	-- then the other parts know what may be done.
	local set = redis.pcall('SET', KEYS[1], '1 ' .. ARGV[1] .. ' ' .. token .. ' ' .. now .. ' 0 ' .. tail, 'PX', ARGV[2], 'NX')
	if set and set.ok then
		call('SET', KEYS[2], tokens == '1' and token or string.format('%.0f', token + tokens - 1))
		return token == now and 'G ' .. now or 'G ' .. now .. ' ' .. token .. ' ' .. tokens .. ' ' .. ARGV[1] .. ' ' .. ARGV[2]
	end
	local f = call('HMGET', KEYS[1], 'h', 'a', 'z', 'w:' .. ARGV[1])
	local h, ms = f[1], string.sub(now, 1, 13)
	local ttl = string.match(ARGV[4], '^[pPs] %d+ (%d+) ')
	-- A text hold, of another request, that lasts: nobody can get in, so all there is to do for one who waits is to keep a place.
	if h and ttl and string.sub(h, 1, 3) == 'P1 ' and string.sub(h, 4, 16) > ms
		and string.sub(h, 20, 20 + #ARGV[1]) ~= ARGV[1] .. ' ' then
		local number, after, since = f[3], f[3] + 1, now
		if f[4] then -- a heartbeat; its place is stored as text too, or this is not for the quick part
			number, after = f[4], f[3]
			since = string.match(call('HGET', KEYS[1], 'q:' .. number) or '', '^P1 %d+ (%d+) ')
			if since then -- a server without memory goes on writing when it has written what needs none; see save of lock
				call('PEXPIRE', KEYS[1], math.max(450000, call('PTTL', KEYS[1]))) -- QUEUE_LASTS of lock
			end
		end
		if since then
			call('HSET', KEYS[1], 'q:' .. number, 'P1 ' .. ms + ttl .. ' ' .. since .. ' ' .. ARGV[1] .. ' ' .. ARGV[4],
				'w:' .. ARGV[1], number, 'z', after)
			if not f[4] and string.sub(h, 4, 16) - ms < 450000 then
				call('PEXPIRE', KEYS[1], '450000')
			end
			-- As recall of rules, unless others stand before it: the first of them has told the holder, and each heartbeat repeats it. What
			-- is in quotes in META has no " of its own but behind a \, so it cannot look like the mark.
			if (f[4] or f[2] == f[3]) and string.find(h, '{"r":', 20, true) then
				local id, channel = string.match(h, '^P1 %d+ %d (%S+) .- (%S+) {"r":')
				if id then
					redis.pcall('PUBLISH', channel, 'W ' .. id .. ' ' .. now)
				end
			end
			return 'W ' .. now .. ' ' .. f[2] .. ' ' .. number .. ' ' .. h
		end
	end
end
