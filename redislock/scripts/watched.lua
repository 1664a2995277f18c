-- watched: what stands in front of a script that changes a lock which may be watched; watched_end stands behind it. The last
-- of KEYS is the lock's watchers, and those are told if the script has changed who holds the lock. They are told in the same
-- step, so that who looks after that finds the change.
local function script()
