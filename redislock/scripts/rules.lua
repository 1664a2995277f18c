-- rules: who gets in, in which order, and what is minted. Included after lock.

local asked = '' -- the limit that self has brought

local grants, steps = 0, 0 -- what this run has done of MOST_GRANTS and MOST_STEPS

-- drop ends h.
local function drop(h)
	if members[h[ID]] == h then
		part(h)
	else
		for i, other in ipairs(holds) do
			if other == h then
				table.remove(holds, i)
				break
			end
		end
	end
	changed, ended = true, true
end

-- find returns the hold with that ID.
local function find(id)
	for _, h in ipairs(holds) do
		if h[ID] == id then
			return h
		end
	end
	local h = member(id)
	if h and h[UNTIL] <= ms then -- one of more than a run ends
		drop(h)
		return
	end
	return h
end

-- kin returns what tells whether a hold is of r's owner; or nothing if r asks beside a hold that is over.
local function kin(r)
	if r[BESIDE] == '' then
		return function(h) return r[OWNER] ~= '' and h[OWNER] == r[OWNER] end
	end
	local beside = find(r[BESIDE])
	if beside and live(beside) then
		return function(h) return h[GROUP] == beside[GROUP] end
	end
end

-- capacity is how many permits there are; 0 is any number.
local function capacity()
	return tonumber(limit ~= '' and limit or asked) or 0
end

-- judge says how r stands to what its owner has: apart, reenters, upgrades, stuck (it would wait for its own owner, for
-- ever), or lost (what it asks beside is over); and which group it joins. An owner without a name has but one hold, and what
-- was asked for beside that.
local function judge(r)
	if r[OWNER] == '' and r[BESIDE] == '' then
		return 'apart'
	end
	local own = kin(r)
	if not own then
		return 'lost'
	end
	local modes, permits, upgradeable, reading, others = {}, {}, nil, nil, false
	for _, h in ipairs(holds) do
		local g = h[GROUP]
		permits[g] = (permits[g] or 0) + (h[MODE] == 's' and h[WEIGHT] or 0)
		if own(h) and live(h) then
			if h[MODE] == 'x' or not modes[g] or (h[MODE] == 'u' and modes[g] == 's') then
				modes[g] = h[MODE]
			end
		end
		others = others or h[MODE] == 'u'
	end
	local beside = r[BESIDE] ~= '' and member(r[BESIDE])
	local crowd = beside and beside[GROUP] or crowdOf(r[OWNER])
	if crowd and not modes[crowd] then
		modes[crowd] = 's'
	end
	local counted = r[MODE] == 's' and capacity() > 0
	for g, mode in pairs(modes) do
		if mode == 'x' then
			if counted and r[WEIGHT] > capacity() - permits[g] then
				return 'stuck' -- more permits than there are would be out when the exclusive hold ends
			end
			return 'reenters', g
		elseif mode == 'u' then
			upgradeable = g
		else
			reading = g
		end
	end
	if counted then
		return 'apart' -- permits are counted, each acquisition takes its own
	elseif upgradeable then
		return r[MODE] == 'x' and 'upgrades' or 'reenters', upgradeable
	elseif not reading then
		return 'apart'
	elseif r[MODE] == 's' or (r[MODE] == 'u' and not others) then
		return 'reenters', reading
	end
	return 'stuck' -- a reader that waits to write waits for itself
end

-- fits reports whether r is compatible with all holds but those of the group own.
local function fits(r, own)
	local used = permits
	local mine = own and inside > 0 and band(own)
	if r[MODE] == 'x' and inside > (mine and mine[1] or 0) then
		return false
	end
	for _, h in ipairs(holds) do
		if h[GROUP] ~= own then
			if r[MODE] == 'x' or h[MODE] == 'x' or (r[MODE] == 'u' and h[MODE] == 'u') then
				return false
			end
			used = used + h[WEIGHT]
		end
	end
	return r[MODE] == 'x' or capacity() == 0 or r[WEIGHT] <= capacity() - used
end

-- exclusive reports that an exclusive hold is in: then nobody who waits can get in.
local function exclusive()
	for _, h in ipairs(holds) do
		if h[MODE] == 'x' then
			return true
		end
	end
	return false
end

-- mint returns the first of n new tokens, and n. Several are given only when the clock is ahead of the last one: otherwise
-- tokens would run ahead of the clock for ever, and fall behind after a failover.
local function mint(n)
	minted = true
	if floor and floor >= now then
		floor = string.format('%.0f', floor + 1)
		return floor, 1
	end
	n = math.max(1, math.min(n, MOST_TOKENS))
	floor = n == 1 and now or string.format('%.0f', now + n - 1)
	return now, n
end

-- grant makes w a hold. The token is minted here, in the step that grants.
local function grant(w, state, lasts)
	local verdict, group = judge(w)
	local token, tokens, nonce
	if verdict == 'reenters' then
		for _, h in ipairs(holds) do
			local newest = h[NEWEST] or {h[TOKEN], h[TOKENS], h[NONCE]}
			if h[GROUP] == group and (not token or newest[1] > token) then
				token, tokens, nonce = newest[1], newest[2], newest[3]
			end
		end
		local b = band(group)
		if b and (not token or b[2] > token) then
			token, tokens, nonce = b[2], b[3], b[4]
		end
	else
		token, tokens = mint(w[WANT])
		nonce = w[ID]
		for _, h in ipairs(holds) do
			if h[GROUP] == group then
				h[NEWEST] = {token, tokens, nonce}
			end
		end
		local b = group and band(group)
		if b then
			setBand(group, {b[1], token, tokens, nonce})
		end
	end
	w[GRANTED], w[GROUP], w[TOKEN], w[TOKENS], w[NONCE] = now, group or w[ID], token, tokens, nonce
	w[UNTIL], w[PASS], w[STATE] = ms + lasts, 0, state
	local apart = w[MODE] == 's' and w[DELAY] == 0
	for _, h in ipairs(holds) do
		apart = apart and h[GROUP] ~= w[GROUP]
	end
	if apart then
		mix(w)
	else
		holds[#holds + 1] = w
	end
	grants, changed = grants + 1, true
end

-- admit grants w, which waited with number n: to self at once, to others by a push that must be claimed.
local function admit(n, w)
	leave(n, w)
	if w[ID] == self then
		grant(w, HELD, w[LEASE])
		granted = w
		return
	end
	grant(w, CLAIMED, w[CLAIM])
	pushes[#pushes + 1] = {n, w}
end

local refusal -- what self was refused with in this run

-- refuse tells w, which waited with number n, that it would wait for its own owner, or that what it asks beside is over.
local function refuse(n, w, verdict)
	leave(n, w)
	if w[ID] == self then
		refusal = verdict
	end
	pushes[#pushes + 1] = {n, w, 'X ' .. w[ID] .. ' ' .. now .. ' ' .. verdict}
end

-- nudge tells w, which waits with number n, to ask again, because this run has done enough.
local function nudge(n, w)
	pushes[#pushes + 1] = {n, w, 'A ' .. w[ID] .. ' ' .. now}
end

-- front puts w before everybody who does not upgrade: they wait for its owner's read to end, so behind them it would wait
-- for ever.
local function front(w)
	local n = first
	while n < after and at(n) and judge(at(n)) == 'upgrades' do
		n = n + 1
	end
	for i = first, n - 1 do
		put(i - 1, at(i))
	end
	first = first - 1
	count(w, 1)
	put(n - 1, w)
end

-- follow lets in what else the owner of a new hold has in the queue: where it was it might wait for its own owner. It reports
-- whether the head of the queue is another now.
local function follow(owner)
	local n, upgrading = first, {}
	while owner ~= '' and field('c:' .. owner) and n < after do
		local w = at(n)
		if w and w[OWNER] == owner then
			local verdict = judge(w)
			if verdict == 'reenters' then
				admit(n, w)
			elseif verdict == 'upgrades' then
				leave(n, w)
				upgrading[#upgrading + 1] = w
			elseif verdict == 'stuck' then
				refuse(n, w, verdict)
			end
		end
		n = n + 1
	end
	for _, w in ipairs(upgrading) do -- after the walk, which would meet them again, and in their order
		front(w)
	end
	return #upgrading > 0
end

-- handOn has somebody go on, because this run has looked at enough: of those who came last one who most likely lives.
local function handOn(skip)
	for n = after - 1, math.max(first, after - MOST_ENDED), -1 do
		local w = at(n)
		if w and w[ID] ~= self and not skip[w[ID]] and not skip[w[CHANNEL]] and heard(w) then
			return nudge(n, w)
		end
	end
end

-- drain grants from the head of the queue for as long as the head fits. It passes over those of skip and those who were not heard
-- of lately, who keep their place, and drops those whose heartbeat has stopped. When it has done enough for one run, whoever is
-- next is told to ask, which goes on.
local function drain(skip)
	local n = first
	while n < after and steps < MOST_STEPS do
		local w = at(n)
		steps = steps + 1
		if w and dead(w) then
			leave(n, w)
			passOn(w)
		elseif w and not skip[w[ID]] and not skip[w[CHANNEL]] and heard(w) then
			local verdict, own = judge(w)
			if verdict == 'stuck' or verdict == 'lost' then
				refuse(n, w, verdict)
			elseif verdict ~= 'reenters' and not fits(w, own) then
				local rare = w[WAY] == 'P' and w[ALIVE] - w[TTL] + w[CLAIM] <= ms
				if w[ID] ~= self and (rare and next(pushes) or w[WAY] == 'P' and sooner) then
					sooner = false
					nudge(n, w) -- it asks when a claim ends that nobody makes, or what was kept; by itself it would come later
				end
				return
			elseif grants < MOST_GRANTS or w[ID] == self then
				admit(n, w)
				if follow(w[OWNER]) then
					n = first - 1
				end
			else
				nudge(n, w)
				return
			end
		end
		n = n + 1
	end
	if n < after then
		handOn(skip)
	end
end

-- deserted reports that nobody waits but those who are passed over.
local function deserted()
	for n = first, after - 1 do
		local w = at(n)
		steps = steps + 1
		if steps > MOST_STEPS or w and heard(w) then
			return false
		end
	end
	return true
end

-- back returns a pushed grant to the queue as number n, or to the head if an upgrade has taken that place meanwhile.
local function back(n, h)
	for field = #h, GROUP, -1 do
		h[field] = nil
	end
	enter(at(n) and first - 1 or n, h)
end

-- retry gives who let a pushed grant pass another chance, if it lives, and if there still are as many permits as it wants:
-- at the head of the queue it would block everybody. Who is not there any more hears of the limit when it asks again.
local function retry(h)
	local fewer = h[MODE] == 's' and capacity() > 0 and h[WEIGHT] > capacity()
	if h[STATE] == CLAIMED and not dead(h) and not fewer then
		h[MISSED] = judge(h) == 'upgrades' and 1 or h[MISSED] + 1 -- at the end an upgrade would wait for itself
		back(h[MISSED] <= PATIENCE and first - 1 or after, h)
	elseif h[STATE] == CLAIMED then
		passOn(h)
	end
end

-- evict ends the holds that are over.
local function evict()
	local over = inside > 0 and lapsed() or {}
	for i = #over, 1, -1 do -- backwards: each goes back to the head
		drop(over[i])
		retry(over[i])
	end
	for i = #holds, 1, -1 do
		local h = holds[i]
		if h[UNTIL] <= ms and h[STATE] == HELD and h[DELAY] > 0 then -- lost, and nobody gets in yet
			h[STATE], h[UNTIL], changed, ended = DELAYED, h[UNTIL] + h[DELAY], true, true
		end
		if h[UNTIL] <= ms then
			table.remove(holds, i)
			changed, ended = true, true
			retry(h)
		end
	end
end

-- deliver sends the pushes, after the state is written. It reports whether one has reached nobody: then a grant is taken
-- back, and the waiter keeps its place but is skipped, and so are all others of its process. (In a Cluster the count of receivers is
-- not to be relied on.)
local function deliver(skip)
	local sent, unheard, again = pushes, {}, false
	pushes = {}
	for _, push in ipairs(sent) do
		local n, w, text = push[1], push[2], push[3]
		text = text or 'G ' .. w[ID] .. ' ' .. now .. ' ' .. w[TOKEN] .. ' ' .. w[TOKENS] .. ' ' .. w[NONCE] .. ' ' .. w[CLAIM]
		if w[WAY] == 's' then
			redis.pcall('SPUBLISH', w[CHANNEL] .. ':' .. string.match(KEYS[2], '{.-}'), text)
		elseif redis.pcall('PUBLISH', w[CHANNEL], text) == 0 then
			if not push[3] then
				unheard[#unheard + 1] = push
			elseif string.sub(text, 1, 1) == 'A' then -- another one has to go on
				skip[w[ID]], skip[w[CHANNEL]], again = true, true, true
			end
		end
	end
	for i = #unheard, 1, -1 do -- backwards: who finds the place taken goes before those who were admitted later
		local n, w = unheard[i][1], unheard[i][2]
		if find(w[ID]) == w then
			drop(w)
			back(n, w)
			skip[w[ID]], skip[w[CHANNEL]], grants = true, true, grants - 1
		end
	end
	return again or #unheard > 0
end

-- RETAINS is how the META of a hold begins whose client may keep the lock when nobody holds it any more.
local RETAINS = '{"r":'

-- recall tells the process of such a hold that another wants the lock: as a break does, whatever its WAY was, because its slot's
-- channel is listened to only while it waits.
local function recall()
	for _, h in ipairs(holds) do
		if string.sub(h[META], 1, 5) == RETAINS and live(h) then
			redis.pcall('PUBLISH', h[CHANNEL], 'W ' .. h[ID] .. ' ' .. now)
		end
	end
end

-- finish ends every script that changes a lock. Whoever is left in the queue wants it, and so does who was refused.
local function finish(refused)
	local skip = {}
	save()
	while deliver(skip) do
		drain(skip)
		save()
	end
	if refused or first < after then
		recall()
	end
end

-- describe tells who is in the way of r, or of anybody: UNTIL TOKEN SINCE META, zeros if nobody holds.
local function describe(r)
	local h, own = holds[1], r and kin(r)
	for _, other in ipairs(holds) do
		if not own or not own(other) then
			h = other
			break
		end
	end
	if inside > 0 and not (h and own and not own(h)) then -- the first of the crowd that is not of r's owner, if it is near
		for _, id in ipairs(call('ZRANGE', endsKey(), 0, 2)) do
			local other = member(id)
			if not h or other and own and own(h) and not own(other) then
				h = other
			end
		end
	end
	if not h then
		return '0 0 0 '
	end
	local token = h[PASS] == 0 and h[TOKEN] or string.format('%.0f', h[TOKEN] + h[PASS])
	return h[UNTIL] .. ' ' .. token .. ' ' .. h[GRANTED] .. ' ' .. h[META]
end
