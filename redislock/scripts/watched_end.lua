end

if call('ZCARD', KEYS[#KEYS]) == 0 then
	return script()
end

-- holders tells one set of holders from another, though sometimes it takes one for two.
local function holders()
	return call('MGET', KEYS[1])[1] or call('HGET', KEYS[1], 'h')
end

local before = holders()
local answer = script()
if holders() ~= before then
	tell(KEYS[#KEYS])
end
return answer
