-- requeue, the general part: the release. The request follows, by acquire.
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
