-- guard: the fence before data in Redis. It stands before a script of the caller's, which runs only if the stamp passes.
--
-- KEYS  the marks of the resource, then the caller's keys
-- ARGV  the token as 20 digits, the nonce, w (a writer's) or r (a reader's), then the caller's arguments
-- Returns  what the caller's script does, or the error FENCED, followed by w or r, the token and the nonce that are in the way
-- Atomic, because the marks are compared and raised in the step that runs the caller's script.
--
-- The marks are a hash: wt and wn are the token and the nonce of the newest writer, rt and rn those of the newest reader.
-- Tokens have a fixed width, so they are compared as strings: a number of Lua has not enough digits.
local function fenced()
	local token, nonce, role = ARGV[1], ARGV[2], ARGV[3]
	local m = redis.call('HMGET', KEYS[1], 'wt', 'wn', 'rt', 'rn')
	local function behind(t, n)
		return t and not (token > t or token == t and nonce == n)
	end
	local seen
	if behind(m[1], m[2]) then
		seen = {'w', m[1], m[2]}
	end
	if role == 'w' and behind(m[3], m[4]) and (not seen or m[3] > seen[2]) then
		seen = {'r', m[3], m[4]}
	end
	if seen then
		return {err = 'FENCED ' .. table.concat(seen, ' ')}
	end
	if role == 'w' and m[1] ~= token then
		redis.call('HSET', KEYS[1], 'wt', token, 'wn', nonce)
	elseif role == 'r' and (not m[3] or token > m[3]) then
		redis.call('HSET', KEYS[1], 'rt', token, 'rn', nonce)
	end
end
local refusal = fenced()
if refusal then
	return refusal
end
local function from(list, first)
	local rest = {}
	for i = first, #list do
		rest[i - first + 1] = list[i]
	end
	return rest
end
local KEYS, ARGV = from(KEYS, 2), from(ARGV, 4)
