-- touch: a write, in front of a script that may make none. Its caller waits for replicas (WAIT), and they acknowledge writes:
-- without one, WAIT says nothing of what the script has found. Not even of what an earlier copy of it has changed.
--
-- KEYS  1 the lock or latch   2 the floor of tokens of the slot, which becomes what it was
--
-- A slot that has never had a lock has no floor, and gets none: both the write and its removal go to the replicas.
-- A server without memory refuses a SET, and must not refuse the release of a lock because of that: then the lock's lease is set
-- to what it is, which needs no memory. Without a lock nothing can be confirmed, and the refusal is the answer. A latch that
-- counts has no lease; its readers wait on, so that need not be confirmed.
local floor = redis.call('GET', KEYS[2])
local touched = redis.pcall('SET', KEYS[2], floor or '0')
if touched.err then
	local lasts = string.find(touched.err, 'OOM', 1, true) and redis.call('PTTL', KEYS[1]) or -2
	if lasts > 0 then
		redis.call('PEXPIRE', KEYS[1], lasts)
	elseif lasts ~= -1 then
		return touched
	end
elseif not floor then
	redis.call('DEL', KEYS[2])
end
