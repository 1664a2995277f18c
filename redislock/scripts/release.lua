-- release, the general part.
local id, undo = ARGV[1], ARGV[2] == 'u'
local hold, i = find(id)
local place = undo and not hold and placeOf(id)
local queued = place and at(place)
local answer = 'ok'
if hold and not live(hold) and not undo then
	answer = 'lost ' .. (hold[STATE] == KEPT and 'gone' or known[3] or 'expired')
elseif hold and tonumber(ARGV[4]) > 0 and not undo then
	hold[STATE], hold[UNTIL], changed, ended = KEPT, ms + ARGV[4], true, true
elseif hold then
	drop(i)
	if undo then
		passOn(hold)
	end
elseif queued then
	leave(place, queued)
	passOn(queued)
	ended = true
elseif undo then
	unpark(id)
else
	answer = 'lost ' .. why(known[3])
end
if ended then
	drain({})
end
finish()
if ARGV[2] ~= '' and answer == 'ok' then
	bury(KEYS[3], 'gone', ARGV[3])
end
return answer
