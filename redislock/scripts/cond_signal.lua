-- cond_signal: wakes who has waited for the longest for the condition of a mutex, or everybody.
--
-- KEYS  1 the lock   2 the floor of tokens of the slot   3 the tombstone of this ID
-- ARGV  1 the ID   2 1 for everybody, 0 for one   3 how many ms a tombstone lasts
-- Returns  ok | newer VERSION (of the lock or of the condition)
-- Atomic, because who is taken from one queue must be in the other before anybody looks.
--
-- It begins with a write that a server without memory does not refuse, so that signals arrive on one too.
call('PEXPIRE', KEYS[3], ARGV[3])
local version = later()
if version then
	finish()
	return 'newer ' .. version
end
if not known[3] then
	while wake() and ARGV[2] == '1' do
		ended = true
	end
	ended = true
end
if ended then
	drain({})
end
finish()
bury(KEYS[3], 'gone', ARGV[3])
return 'ok'
