-- requeue: releases one hold and acquires with another ID in the same step, behind everybody who waits. Nothing happens
-- if the hold is not there. This is the first half; acquire is the second.
--
-- KEYS  1 to 3 as for acquire, of the request   4 the tombstone of the hold to give
-- ARGV  1 to 5 as for acquire   6 the ID of the hold to give   7 empty, or r (see release)   8 how many ms a tombstone lasts
-- Returns  as acquire, or lost REASON if there is no hold to give
-- Atomic, because a lock given back and asked for in two steps would cost a round trip more, and a place.
if known[3] then
	finish() -- what has ended is written: a signal may have gone on
	return known[3]
end
local given = find(ARGV[6])
if given and live(given) then
	drop(given)
	drain({})
	if ARGV[7] ~= '' then
		bury(KEYS[4], 'gone', ARGV[8])
	end
elseif not find(ARGV[1]) and not placeOf(ARGV[1]) then
	finish() -- not a copy of a step that was done
	return 'lost ' .. why(call('GET', KEYS[4]))
end
