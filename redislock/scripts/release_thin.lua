local call = redis.call
-- release: ends a hold, shortens it, or takes away whatever a request has left, and grants to who waits.
--
-- KEYS  1 the lock   2 the floor of tokens of the slot   3 the tombstone of this ID
-- ARGV  1 the ID, and no more if it is a plain release
--       2 empty, or u (undo: also leave the queue, and refuse late copies), or r (a copy of the acquire may be under way:
--         refuse it)   3 how many ms a tombstone lasts   4 how many ms to keep others out, 0 for not at all
-- Returns  ok | lost REASON | newer VERSION. REASON is taken (another is in), broken, gone (released or undone), expired.
-- Atomic, because comparing the ID and freeing are one step, and so are freeing and granting to the next: nobody gets in
-- between, and no waiter is forgotten.
--
-- Here is the most common answer, without setting up what the others need, not even the clock: the lock is thin.
if not ARGV[2] and known[1] and string.sub(known[1], 1, #ARGV[1] + 3) == '1 ' .. ARGV[1] .. ' ' then
	call('DEL', KEYS[1])
	return 'ok'
end
