-- touch: a write, in front of a script that may make none. Its caller waits for replicas (WAIT), and they acknowledge writes:
-- without one, WAIT says nothing of what the script has found. Not even of what an earlier copy of it has changed.
--
-- KEYS  2 the floor of tokens of the slot, which becomes what it is
--
-- A server without memory refuses it, and must not refuse a release because of that; any other refusal is the script's.
local touched = redis.pcall('SET', KEYS[2], redis.call('GET', KEYS[2]) or '0')
if touched.err and not string.find(touched.err, 'OOM', 1, true) then
	return touched
end
