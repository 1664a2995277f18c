-- watch: has a process told of changes of a lock or latch, for a while. Asked again, it goes on.
--
-- KEYS  1 the watchers of the lock
-- ARGV  1 the way: p or s (by PUBLISH or SPUBLISH)   2 the channel   3 for how many ms
-- Returns  N known | N new: how many watch; and whether it was among them until now. If it was not, it may have missed something.
-- Atomic, because who was told until now must not be dropped in between.
--
-- The watchers are a sorted set of WAY CHANNEL, by the instants in ms until which they are told: one costs the same among
-- thousands as by itself.
local ms, me = math.floor(tonumber(now) / 1000), ARGV[1] .. ' ' .. ARGV[2]
local ends = call('ZSCORE', KEYS[1], me)
call('ZREMRANGEBYSCORE', KEYS[1], '-inf', ms)
call('ZADD', KEYS[1], ms + ARGV[3], me)
call('PEXPIRE', KEYS[1], math.max(ARGV[3], call('PTTL', KEYS[1])))
return call('ZCARD', KEYS[1]) .. (ends and tonumber(ends) > ms and ' known' or ' new')
