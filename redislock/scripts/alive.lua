-- alive: says for all who wait in a process that it is alive. See presence.
--
-- KEYS  1 the processes that are alive
-- ARGV  1 the process   2 for how many ms it is taken to be alive
-- Returns  N known | N new: about how many processes have waiters; and whether this one was taken to be alive until now. If it was
--          not, its waiters may have been passed over.
-- It begins with a write that a server without memory does not refuse. Marks that are over stay for a while, see presence.
local ms = math.floor(tonumber(now) / 1000)
local till = call('ZSCORE', KEYS[1], ARGV[1])
call('ZREMRANGEBYSCORE', KEYS[1], '-inf', ms - 10000)
call('ZADD', KEYS[1], ms + ARGV[2], ARGV[1])
call('PEXPIRE', KEYS[1], math.max(ARGV[2] + 10000, call('PTTL', KEYS[1])))
return call('ZCARD', KEYS[1]) .. (till and tonumber(till) > ms and ' known' or ' new')
