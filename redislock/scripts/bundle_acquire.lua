-- bundle: plain requests that goroutines of one client make at about the same time, in one run. To begin a run costs a server
-- more than a plain request, and so does each call of a command: here they share what they need to know.
--
-- KEYS  for each request, as it has them: the lock, the floor of tokens of the slot, the tombstone of its ID
-- ARGV  1 a letter for each request: a (acquire) or r (release)   then for each request its own: 4 of an acquire, 1 of a release
-- Returns a list with the answer to each, which may be an error: the others have run all the same.
-- Atomic like each of the requests; they need not be so together.
local all = KEYS[1] and call('MGET', unpack(KEYS)) -- none when the server is to know the script
local function acquire(KEYS, ARGV, known)
