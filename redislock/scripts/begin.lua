-- begin: what lock needs to know, for the scripts without a quick part.
local known = call('MGET', KEYS[1], KEYS[2], KEYS[3])
