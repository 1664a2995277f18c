-- resize: changes the limit of a semaphore that is in use, and grants to who waits. Of one that nobody uses there is none.
--
-- KEYS  1 the lock   2 the floor of tokens of the slot   3 the tombstone of an empty ID
-- ARGV  1 the limit   2 and 3 none at first; then what the run before has answered
-- Returns  ok | conflict WEIGHT (somebody waits for so many permits, and nothing was changed) | newer VERSION |
--          more NEXT FIRST (nothing was changed: ask again, with these)
-- Atomic, because whoever is granted in between would be so by the limit from before. It looks at all who wait, if the limit
-- becomes smaller: at so many in one run, so that none keeps others waiting for long. FIRST was the first number of the queue then, and
-- those before NEXT were looked at. Who has come since stands behind them, or before FIRST: in the last run, which changes the limit, all
-- of both are looked at.
local MOST_LOOKS = 400
local wanted, from, head, pause = 0, tonumber(ARGV[2] or first), tonumber(ARGV[3] or first), nil
if tonumber(ARGV[1]) < capacity() then
	local looks = 0
	local function look(n, to)
		while n < to and looks < MOST_LOOKS do
			local w = at(n)
			wanted, looks, n = math.max(wanted, w and w[MODE] == 's' and w[WEIGHT] or 0), looks + 1, n + 1
		end
		return n
	end
	if look(first, math.min(head, after)) < math.min(head, after) then
		pause = 'more ' .. first .. ' ' .. first -- so many have come to the front: as at first
	else
		from = look(math.max(from, first), after)
		pause = from < after and 'more ' .. from .. ' ' .. first
	end
end
local fitting = wanted <= tonumber(ARGV[1])
if limit ~= '' and fitting and not pause and (#holds + inside > 0 or first < after) then
	limit, changed = ARGV[1], true
end
drain({})
finish()
return not fitting and 'conflict ' .. string.format('%.0f', wanted) or pause or 'ok'
