-- presence: who is alive. Included after crowd.
--
-- A waiter is heard of when it asks. That is dear where thousands wait, so a process says for all that wait in it that it is alive,
-- and they ask now and then. The sorted set alive has those processes, by the instants in ms until which that holds. Such a waiter
-- has the WAY P, and a TTL that is longer than the time after which a silent one is dead: ASKS times its CLAIM.
local ASKS = 2.5
local PLACE = 3000 -- for how many ms a place lasts after its process has fallen silent
local speaks = {} -- until when, of each process that was looked up in this run

-- spokenFor reports whether the process of w is alive, and says so for its waiters, or did so until grace ms ago.
local function spokenFor(w, grace)
	local process = w[CHANNEL]
	if w[WAY] ~= 'P' then
		return false
	end
	if not speaks[process] then
		local prefix, name = string.match(process, '^(.*)push:(%w+)$')
		speaks[process] = prefix and tonumber(call('ZSCORE', prefix .. 'alive', name) or 0) or 0
	end
	return speaks[process] + grace > ms
end

-- heard reports whether w has given a sign of life within the time in which it would have to claim a grant. It gives two in that
-- time, so who has not is dead, or so far away that a push would do it no good: it keeps its place and is passed over, and however
-- many died at about the same time, at most one of them is granted what nobody claims.
local function heard(w)
	return w[ALIVE] - w[TTL] + w[CLAIM] > ms or spokenFor(w, 0)
end

-- dead reports whether w has been silent for so long that it loses its place.
local function dead(w)
	return w[ALIVE] <= ms or w[WAY] == 'P' and w[ALIVE] - w[TTL] + ASKS * w[CLAIM] <= ms and not spokenFor(w, PLACE)
end
