-- begin: what is looked at first. A lock that is a hash does not show in it.
local known = redis.call('MGET', KEYS[1], KEYS[2], KEYS[3])
