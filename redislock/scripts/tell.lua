-- tell: tells those who watch. Included after clock. The watchers are as watch keeps them; the key's name ends with what is watched.
local function tell(watchers)
	local tag, what = string.match(watchers, '({%l+}):(.*)$')
	for _, watcher in ipairs(call('ZRANGE', watchers, string.sub(now, 1, 13), '+inf', 'BYSCORE')) do
		local way, channel = string.sub(watcher, 1, 1), string.sub(watcher, 3)
		if way == 's' then
			redis.pcall('SPUBLISH', channel .. ':' .. tag, 'C ' .. what)
		else
			redis.pcall('PUBLISH', channel, 'C ' .. what)
		end
	end
end
