-- confirm: makes a hold last for its lease from now, as renew does, and sets its tokens, so that all later ones of the slot
-- are greater. It is for locks that several servers keep together: each has minted a token, and all are to know the one
-- that counts.
--
-- KEYS  1 to 3 as for acquire
-- ARGV  1 the ID   2 the lease in ms   3 the token, as 16 digits   4 the last token of its block, likewise
-- Returns  ok | lost REASON (see release) | newer VERSION
-- Atomic, because the hold must be there when its tokens become the slot's: another one granted in between would have
-- smaller ones.
local hold = find(ARGV[1])
local lasts = hold and live(hold)
if lasts then
	hold[UNTIL], hold[STATE] = math.max(hold[UNTIL], ms + ARGV[2]), HELD
	hold[TOKEN], hold[TOKENS] = ARGV[3], ARGV[4] - ARGV[3] + 1
	touch(hold)
	if not floor or floor < ARGV[4] then
		floor, minted = ARGV[4], true
	end
end
if ended then
	drain({})
end
finish()
return lasts and 'ok' or 'lost ' .. why(known[3])
