-- Admits an order, or says why not. One step: a crash leaves all of it or nothing.
-- KEYS  1 sale  2 reservations  3 what each user has  4 reservations by the end of their time  5 outbox
-- ARGV  1 request  2 user  3 quantity  4 "1" if the outbox is the queue
-- Returns {answer, record}: reserved, again (record is what became of it), conflict, early, closed, limit, sold_out.
local record = redis.call('HGET', KEYS[2], ARGV[1])
if record then
	local _, user, quantity = record:match('^([^|]*)|([^|]*)|([^|]*)')
	if user ~= ARGV[2] or quantity ~= ARGV[3] then return {'conflict', ''} end
	return {'again', record}
end
local sale = redis.call('HMGET', KEYS[1], 'left', 'limit', 'opens', 'closes', 'hold')
if not sale[1] then return {'closed', ''} end
local time = redis.call('TIME')
local now, quantity = time[1] * 1000 + math.floor(time[2] / 1000), tonumber(ARGV[3])
if now < tonumber(sale[3]) then return {'early', ''} end
if now >= tonumber(sale[4]) then return {'closed', ''} end
if tonumber(redis.call('HGET', KEYS[3], ARGV[2]) or 0) + quantity > tonumber(sale[2]) then return {'limit', ''} end
if tonumber(sale[1]) < quantity then return {'sold_out', ''} end
record = 'RESERVED|' .. ARGV[2] .. '|' .. ARGV[3] .. '|'
redis.call('HINCRBY', KEYS[1], 'left', -quantity)
redis.call('HINCRBY', KEYS[3], ARGV[2], quantity)
redis.call('HSET', KEYS[2], ARGV[1], record)
redis.call('ZADD', KEYS[4], string.format('%.0f', now + tonumber(sale[5])), ARGV[1])
if ARGV[4] == '1' then
	redis.call('XADD', KEYS[5], '*', 'request', ARGV[1], 'user', ARGV[2], 'quantity', ARGV[3])
end
return {'reserved', record}
