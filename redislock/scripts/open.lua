-- open: reads the lock and ends what is over. Included after rules, by all scripts that change a lock.
local newer = load()
if newer then
	return 'newer ' .. newer
end
if form == 'none' and not known[1] and call('PTTL', KEYS[1]) ~= -2 then -- a hash, but another program's
	return 'newer ?'
end
if inside > 0 then
	mend()
end
evict()
