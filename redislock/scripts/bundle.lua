end
local kinds, answers, seen, arg = ARGV[1], {}, {}, 1
local freed = {} -- what quick answers have left to be deleted in one go
local function settle()
	if freed[1] then
		call('DEL', unpack(freed))
		freed = {}
	end
end
for i = 1, #kinds do
	local acquires, lock, floor, tomb, id = string.sub(kinds, i, i) == 'a', KEYS[3 * i - 2], KEYS[3 * i - 1], KEYS[3 * i], ARGV[arg + 1]
	local value, last, gone = all[3 * i - 2], all[3 * i - 1], all[3 * i]
	local fresh, answer = not (seen[lock] or seen[floor]), nil
	seen[lock], seen[floor] = true, true
	-- The two most common answers, as acquire_fast and release_thin have them.
	if fresh and acquires and not value and not gone and not (last and last >= now) then
		local tokens = ARGV[arg + 3]
		local set = redis.pcall('SET', lock, '1 ' .. id .. ' ' .. now .. ' ' .. now .. ' 0 ' .. ARGV[arg + 4], 'PX', ARGV[arg + 2], 'NX')
		if set and set.ok then
			call('SET', floor, tokens == '1' and now or string.format('%.0f', now + tokens - 1))
			answer = 'G ' .. now
		end
	elseif fresh and not acquires and value and string.sub(value, 1, #id + 3) == '1 ' .. id .. ' ' then
		freed[#freed + 1], answer = lock, 'ok'
	end
	if not answer then
		settle()
		local keys, known = {lock, floor, tomb}, fresh and {value, last, gone} or call('MGET', lock, floor, tomb)
		local ran
		if acquires then
			ran, answer = pcall(acquire, keys, {id, ARGV[arg + 2], ARGV[arg + 3], ARGV[arg + 4]}, known)
		else
			ran, answer = pcall(release, keys, {id}, known)
		end
		if not ran then -- said as Redis says it of a script of its own: after such an error some of it has run
			answer = {err = tostring(type(answer) == 'table' and answer.err or answer) .. ' script: bundle, on @user_script'}
		end
	end
	answers[i], arg = answer, arg + (acquires and 4 or 1)
end
settle()
return answers
