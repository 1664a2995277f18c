-- alive: says for all who wait in a process that it is alive. See presence.
--
-- KEYS  1 the processes that are alive
-- ARGV  1 the process   2 for how many ms it is taken to be alive
-- Returns how many processes are alive and have waiters.
local ms = math.floor(tonumber(now) / 1000)
call('ZADD', KEYS[1], ms + ARGV[2], ARGV[1])
call('ZREMRANGEBYSCORE', KEYS[1], '-inf', ms)
call('PEXPIRE', KEYS[1], math.max(ARGV[2], call('PTTL', KEYS[1])))
return tostring(call('ZCARD', KEYS[1]))
