-- tell: tells those who watch. Included after clock.
--
-- A list of watchers is text, one line for each: UNTIL WAY CHANNEL. UNTIL is when it has to ask again, in ms as 13 digits,
-- WAY is p or s (by PUBLISH or SPUBLISH). The key's name ends with what is watched.
local function tell(watchers, list)
	local ms = string.sub(now, 1, 13)
	local tag, what = string.match(watchers, '({%l+}):(.*)$')
	for ends, way, channel in string.gmatch(list or '', '(%d+) (%a) (%S+)\n') do
		if ends > ms and way == 's' then
			redis.pcall('SPUBLISH', channel .. ':' .. tag, 'C ' .. what)
		elseif ends > ms then
			redis.pcall('PUBLISH', channel, 'C ' .. what)
		end
	end
end
