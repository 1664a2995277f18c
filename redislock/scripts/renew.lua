-- renew: makes each of many holds last for its lease from now, or longer if it already did. It never revives one, and shortens it
-- only if nobody holds the lock any more; see renewed for those that come late.
--
-- KEYS  the locks
-- ARGV  for each lock: the ID, the lease in ms, how often the hold has passed on inside its process, META as operators are
--       to see it now; one that begins with {"r":2, says that nobody holds the lock, and its client keeps it
-- Returns  one letter for each lock: k (kept), w (kept, it is exclusive, and others wait), l (there is no such hold), n (a newer
--          format)
-- Atomic, because comparing the ID and lengthening are one step for each lock.
local call = redis.call
local HOLD_ID, HOLD_MODE, HOLD_META, HOLD_DELAY, HOLD_UNTIL, HOLD_PASS, HOLD_STATE = 1, 3, 8, 16, 21, 22, 23

-- A hash may have a queue, which outlives the hold by this much: see last in lock.
local QUEUE_LASTS = 450000

-- lengthen writes first what a server without memory does not refuse, and always writes, so that a WAIT after it waits.
local function lengthen(key, lease)
	call('PEXPIRE', key, math.max(lease, call('PTTL', key)))
end

-- renewed says until when a hold lasts that lasted until before, if a renewal with pass and meta is for until then, and whether the
-- renewal is late, so that PASS and META stay as they are: passed, and shown, which is the beginning of the latter. It is, if a later
-- owner has been heard of, or that its own has gone. A lock that nobody holds ends soon, and what is late does not change that.
local function renewed(before, till, passed, pass, shown, meta)
	local was, is = shown == '{"r":2,', string.sub(meta, 1, 7) == '{"r":2,'
	local late = passed > pass or was and not is and passed == pass
	if late and was then
		return before, late
	elseif is and not late then
		return till, late
	end
	return math.max(before, till), late
end

-- renewThin renews a lock that is a string, see lock.
local function renewThin(key, lock, id, lease, pass, meta)
	if string.sub(lock, 1, #id + 3) ~= '1 ' .. id .. ' ' then
		return string.sub(lock, 1, 2) == '1 ' and 'l' or 'n'
	end
	local head, passed, way, longest, rest, at = string.match(lock, '^(1 %S+ %S+ %S+) (%S+) (%S+ %S+ %S+) (%S+) (%S+ %S+) ()')
	local before = call('PTTL', key)
	if before == -1 then -- no end is no early one: see lasting of text
		before = tonumber(longest)
	end
	local lasts, late = renewed(before, lease, tonumber(passed), pass, string.sub(lock, at, at + 6), meta)
	call('PEXPIRE', key, lasts) -- as lengthen does
	if lease > tonumber(longest) then -- as long as the owner may rely on it, should the time to live be removed
		longest = string.format('%.0f', lease)
	end
	local shown = head .. ' ' .. pass .. ' ' .. way .. ' ' .. longest .. ' ' .. rest .. ' ' .. meta
	if shown ~= lock and not late then
		call('SET', key, shown, 'KEEPTTL')
	end
	return 'k'
end

local ms
local function clock()
	if not ms then
		local t = call('TIME')
		ms = t[1] * 1000 + math.floor(t[2] / 1000)
	end
	return ms
end

-- renewText renews the only hold of a hash, see text, and answers kept.
local function renewText(key, h, id, lease, pass, meta, kept)
	if string.sub(h, 20, 20 + #id) ~= id .. ' ' or tonumber(string.sub(h, 4, 16)) <= clock() then
		return 'l'
	end
	lengthen(key, lease + QUEUE_LASTS)
	local head, passed, rest, at = string.match(h, '^(%S+ %S+ %S+ %S+ %S+ %S+) (%S+) (%S+ %S+ %S+ %S+ %S+ %S+) ()', 20)
	local till, late = renewed(tonumber(string.sub(h, 4, 16)), clock() + lease, tonumber(passed), pass, string.sub(h, at, at + 6), meta)
	if late then
		pass, meta = passed, string.sub(h, at)
	end
	call('HSET', key, 'h', 'P1 ' .. string.format('%.0f', till) .. ' 0 ' .. head .. ' ' .. pass .. ' ' .. rest .. ' ' .. meta)
	return kept
end

local lengthened = {} -- by key, for which lease this run has lengthened a crowd's keys: it may hold hundreds of its holds

-- renewMember renews a hold of the crowd, see packMember: its end is in the sorted set. It never passes on.
local function renewMember(key, ends, hold, id, lease, meta)
	local state, till = string.sub(hold, 1, 1), call('ZSCORE', ends, id)
	-- Without an end, the server has lost the set: that is no early end. See mend of crowd, which has it last from now on too.
	if tonumber(state) >= 2 or till and tonumber(till) <= clock() then
		return 'l'
	end
	local longer = (lengthened[key] or 0) < lease
	if longer then
		lengthen(key, lease + QUEUE_LASTS)
		lengthened[key] = lease
	end
	call('ZADD', ends, 'GT', clock() + lease, id)
	if longer then -- now it exists
		lengthen(ends, lease + QUEUE_LASTS)
	end
	local before = '0' .. string.format('%06d', #meta) .. meta
	if string.sub(hold, 1, #before) ~= before then
		call('HSET', key, 's:' .. id, before .. string.sub(hold, 8 + string.sub(hold, 2, 7)))
	end
	return 'k'
end

local function renewHash(key, id, lease, pass, meta)
	local f = call('HMGET', key, 'v', 'h', 's:' .. id, 'e', 'a', 'z')
	if f[1] ~= '1' and f[1] ~= '2' then
		return f[1] and 'n' or 'l'
	end
	if f[3] then
		return renewMember(key, f[4], f[3], id, lease, meta)
	end
	local kept = f[5] == f[6] and 'k' or 'w'
	if string.sub(f[2], 1, 3) == 'P1 ' then
		return renewText(key, f[2], id, lease, pass, meta, kept)
	end
	local holds = cmsgpack.unpack(f[2])
	for _, h in ipairs(holds) do
		if h[HOLD_ID] == id then
			if h[HOLD_STATE] >= 2 or h[HOLD_UNTIL] <= clock() then -- kept from others, or over
				return 'l'
			end
			lengthen(key, lease + h[HOLD_DELAY] + QUEUE_LASTS)
			if f[4] then -- a crowd beside it, whose ends must not be forgotten before the lock
				lengthen(f[4], lease + h[HOLD_DELAY] + QUEUE_LASTS)
			end
			local till, late = renewed(h[HOLD_UNTIL], clock() + lease, h[HOLD_PASS], pass, string.sub(h[HOLD_META], 1, 7), meta)
			h[HOLD_UNTIL], h[HOLD_STATE] = till, 0
			if not late then
				h[HOLD_PASS], h[HOLD_META] = pass, meta
			end
			call('HSET', key, 'h', cmsgpack.pack(holds))
			return h[HOLD_MODE] == 'x' and kept or 'k'
		end
	end
	return 'l'
end

local locks = call('MGET', unpack(KEYS))
local answers = {}
for i, key in ipairs(KEYS) do
	local id, lease, pass, meta = ARGV[4 * i - 3], tonumber(ARGV[4 * i - 2]), tonumber(ARGV[4 * i - 1]), ARGV[4 * i]
	if locks[i] then
		answers[i] = renewThin(key, locks[i], id, lease, pass, meta)
	else
		answers[i] = renewHash(key, id, lease, pass, meta)
	end
end
return table.concat(answers)
