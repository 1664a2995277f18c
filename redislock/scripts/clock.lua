-- clock: what every script begins with. The server's clock is read once, so that one run is one instant.
-- now is the time in microseconds, as 16 digits: numbers of this size are compared as strings, and printed without loss.
local call = redis.call
local time = call('TIME')
local now = #time[2] == 6 and time[1] .. time[2] or time[1] .. string.sub('00000' .. time[2], -6)
