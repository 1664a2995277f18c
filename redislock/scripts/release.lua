-- release, the general part.
local id, kind, keep = ARGV[1], ARGV[2] or '', tonumber(ARGV[4] or 0)
local undo = kind == 'u'
local hold = find(id)
local place = not hold and placeOf(id) -- also of a hold: its push had lapsed before it was claimed
local queued = place and at(place)
local answer = 'ok'
if hold and not live(hold) and not undo then
	answer = 'lost ' .. (hold[STATE] == KEPT and 'gone' or known[3] or 'expired')
elseif hold and keep > 0 and not undo then
	keepOut(hold, keep)
elseif hold then
	drop(hold)
	if undo then
		passOn(hold)
	end
elseif queued then
	leave(place, queued)
	passOn(queued)
	ended = true
	answer = undo and 'ok' or 'lost expired'
elseif undo then
	unpark(id)
else
	answer = 'lost ' .. why(known[3])
end
if ended then
	drain({})
end
finish()
if kind ~= '' and answer == 'ok' then
	bury(KEYS[3], 'gone', ARGV[3])
end
return answer
