-- acquire, the general part: what acquire_fast could not answer, and the second half of requeue.
local how = (ARGV[5] or 'X') == 'X' and {'x', 1, '0', '', ''} or split(ARGV[5], 5)
local tail = split(ARGV[4], 7)
local lease, way, ttl = tonumber(ARGV[2]), tail[1], tonumber(tail[3])
local me = {ARGV[1], how[5], string.sub(how[1], 1, 1), tonumber(how[2]), tonumber(ARGV[3]), lease, tail[6], tail[7], now, way,
	tonumber(tail[2]), ttl, 0, ms + ttl, how[4], tonumber(string.sub(how[1], 2)) or 0}
local tries = way == 't' or way == 'l'
self, asked = ARGV[1], how[3]

local function yours(h)
	return 'G ' .. now .. ' ' .. h[TOKEN] .. ' ' .. h[TOKENS] .. ' ' .. h[NONCE] .. ' ' .. ARGV[2]
end

local hold = find(self)
if hold then
	if live(hold) then
		if string.sub(hold[META], 1, 7) == '{"r":2,' then -- nobody has it any more: a late copy, whose client has long had the answer
			lease = 0
		end
		hold[UNTIL], hold[STATE] = math.max(hold[UNTIL], ms + lease), HELD
		touch(hold)
	end
	if ended or not exclusive() then -- who was let in goes on letting in, where one run did not do it all
		drain({})
	end
	finish()
	return live(hold) and yours(hold) or 'gone'
end

local place = placeOf(self)
local queued = place and at(place)
if queued and not tries then -- a heartbeat
	queued[ALIVE], queued[CHANNEL], queued[WAY], queued[CLAIM], queued[TTL] = me[ALIVE], me[CHANNEL], me[WAY], me[CLAIM], ttl
	put(place, queued)
	if judge(queued) == 'reenters' then -- a push for it was not heard, and then another request of its owner's got in
		admit(place, queued)
	end
end
if ended or not exclusive() then
	drain({})
end
if #holds + inside == 0 and first >= after then
	limit = ''
end

-- join grants me, or queues me, or refuses me: then it returns the answer.
local function join()
	if me[MODE] ~= 'x' and limit ~= '' and limit ~= asked then
		return 'conflict ' .. limit
	end
	local verdict, own = judge(me)
	local free = verdict == 'reenters' or fits(me, own) and (verdict == 'upgrades' or deserted())
	if verdict == 'stuck' then
		return 'stuck'
	elseif verdict == 'lost' then
		return 'lost ' .. (call('GET', KEYS[4]) or 'expired')
	elseif not free and tries then
		return (way == 'l' and 'L ' or 'H ') .. now .. ' 0 0 ' .. describe(me)
	end
	if me[MODE] ~= 'x' then
		limit = asked
	end
	if free then
		grant(me, HELD, lease)
		granted = me
		follow(me[OWNER])
	elseif verdict == 'upgrades' then
		front(me)
	else
		enter(after, me)
	end
end

local refused
if queued and tries and not granted then
	refused = 'H ' .. now .. ' 0 0 ' .. describe(me)
elseif not queued and not granted then
	refused = join()
end
finish(refused)
if granted or refused then
	return refused or yours(granted)
elseif refusal == 'stuck' then
	return 'stuck'
elseif refusal then
	return 'lost ' .. (call('GET', KEYS[4]) or 'expired')
end
local ends, length = soonest(), way == 'P' and ':' .. after - first or ''
if steps >= MOST_STEPS then -- there was more to do
	ends = math.min(ends or math.huge, ms + 100)
end
return 'Q ' .. now .. ' ' .. placeOf(self) - first + 1 .. length .. ' ' .. (ends and math.max(ends - ms, 1) or 0) .. ' ' ..
	describe(me)
