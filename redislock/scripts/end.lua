-- end: how a hold ends. Included after open.

-- bury refuses late copies of the request id for that many ms.
local function bury(key, why, lasts)
	if not call('SET', key, why, 'PX', lasts, 'NX') and call('PTTL', key) < tonumber(lasts) then
		call('PEXPIRE', key, lasts)
	end
end

-- why says how a hold that is not there ended.
local function why(buried)
	return buried or (#holds + inside > 0 and 'taken' or 'expired')
end
