-- cond_wait: gives one hold up and waits for a signal with another ID, in one step; after the signal it is as acquire. It is
-- also the heartbeat of such a wait. This is the first half; acquire is the second.
--
-- KEYS  1 to 3 as for acquire, of the request   4 the tombstone of the hold to give
-- ARGV  1 to 5 as for acquire   6 the ID of the hold to give   7 empty, or r (see release)   8 how many ms a tombstone lasts
--       9 1 if the server has said before that it waits, 0 if not
-- Returns  as acquire (newer also of the condition), or C NOW 0 0 0 0 0 (waits for a signal), or nested (the owner has further
--          holds), or lost REASON if there is no hold to give
-- Atomic, because a signal must not fall between giving up and waiting.
local version = later()
local over = known[3] or version and 'newer ' .. version
if over then
	finish() -- what has ended is written: a signal may have gone on
	return over
end
-- waits does the step for a request that has had no signal, and returns its answer, or nothing if it has had one.
local function waits()
	local id = ARGV[1]
	if find(id) or placeOf(id) then
		return
	end
	local t, h = split(ARGV[4], 7), ARGV[5] == 'X' and {'x', 1, '0', '', ''} or split(ARGV[5], 5)
	local w = {id, h[5], 'x', 1, tonumber(ARGV[3]), tonumber(ARGV[2]), t[6], t[7], now, t[1], tonumber(t[2]), tonumber(t[3]), 0,
		ms + t[3], '', tonumber(string.sub(h[1], 2)) or 0}
	local n = parkedAt(id)
	local given = find(ARGV[6])
	if n then -- a heartbeat
		w[SINCE] = readWaiter(call('HGET', condition(), 'q:' .. n))[SINCE]
		call('PEXPIRE', condition(), QUEUE_LASTS)
		call('HSET', condition(), 'q:' .. n, packWaiter(w))
	elseif given and live(given) then
		for _, other in ipairs(holds) do
			if other ~= given and other[GROUP] == given[GROUP] and live(other) then
				return 'nested'
			end
		end
		park(w)
		drop(given)
		if ARGV[7] ~= '' then
			bury(KEYS[4], 'gone', ARGV[8])
		end
	elseif ARGV[9] == '0' then
		return 'lost ' .. why(call('GET', KEYS[4]))
	else
		return -- its place is lost, maybe with a signal: it goes on as though it had had one
	end
	return 'C ' .. now .. ' 0 0 0 0 0 '
end
local parked = waits()
if parked then
	if ended or not exclusive() then -- as in acquire: a lock that is free, and a queue of the dead, are seen by nobody else
		drain({})
	end
	finish()
	return parked
end
