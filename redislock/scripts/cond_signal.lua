-- cond_signal: wakes who has waited for the longest for the condition of a mutex, or everybody.
--
-- KEYS  1 the lock   2 the floor of tokens of the slot   3 the tombstone of this ID
-- ARGV  1 the ID   2 1 for everybody, 0 for one   3 how many ms a tombstone lasts   4 for everybody, what an earlier run has said
--         after more; else missing
-- Returns  ok | more NUMBER (it has woken as many as a run may; the next, which has an ID of its own, goes on before that
--          number: who began to wait since the first run is not woken) | newer VERSION (of the lock or of the condition)
-- Atomic, because who is taken from one queue must be in the other before anybody looks.
--
-- It begins with a write that a server without memory does not refuse, so that signals arrive on one too.
call('PEXPIRE', KEYS[3], ARGV[3])
local version = later()
if version then
	finish()
	return 'newer ' .. version
end
local MOST_WOKEN = 200
local answer = 'ok'
if not known[3] then
	local all, before, woken = ARGV[2] == '1', tonumber(ARGV[4]), 0
	if all and not before then
		before = tonumber(call('HGET', condition(), 'z') or 0)
	end
	while wake(before) do
		woken = woken + 1
		if not all then
			break
		elseif woken == MOST_WOKEN then
			answer = 'more ' .. string.format('%.0f', before)
			break
		end
	end
	ended = true
elseif string.sub(known[3], 1, 5) == 'more ' then
	answer = known[3]
end
if ended then
	drain({})
end
finish()
bury(KEYS[3], answer == 'ok' and 'gone' or answer, ARGV[3])
return answer
