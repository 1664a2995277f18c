-- resize: changes the limit of a semaphore that is in use, and grants to who waits. Of one that nobody uses there is none.
--
-- KEYS  1 the lock   2 the floor of tokens of the slot   3 the tombstone of an empty ID
-- ARGV  1 the limit
-- Returns  ok | conflict WEIGHT (somebody waits for so many permits, and nothing was changed) | newer VERSION
-- Atomic, because whoever is granted in between would be so by the limit from before. It looks at all who wait, if the limit
-- becomes smaller.
local wanted = 0
if tonumber(ARGV[1]) < capacity() then
	for n = first, after - 1 do
		local w = at(n)
		wanted = math.max(wanted, w and w[MODE] == 's' and w[WEIGHT] or 0)
	end
end
local fitting = wanted <= tonumber(ARGV[1])
if limit ~= '' and fitting and (#holds + inside > 0 or first < after) then
	limit, changed = ARGV[1], true
end
drain({})
finish()
return fitting and 'ok' or 'conflict ' .. string.format('%.0f', wanted)
