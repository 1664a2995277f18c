package experiment

import (
	"github.com/interlock-go/interlock/lab/exhibit"
	"github.com/interlock-go/interlock/lab/exhibit/d15flash"
	"github.com/interlock-go/interlock/lab/internal/play"
)

const (
	// requests is the key of what became of each request.
	requests = "requests"

	// reserve checks, decrements, and sends the order, in one step. A request that comes again changes nothing.
	reserve = `
local was = redis.call('HGET', KEYS[3], ARGV[1])
if was then return was end
local is = 'sold out'
if tonumber(redis.call('GET', KEYS[1])) > 0 then
	redis.call('DECR', KEYS[1])
	redis.call('LPUSH', KEYS[2], ARGV[1])
	is = 'ordered'
end
redis.call('HSET', KEYS[3], ARGV[1], is)
return is`
)

// ordered sends an order to the gate of the sound acts, and reports whether it was admitted.
func ordered(p *play.Play, redis exhibit.Conn, request string) (bool, error) {
	answer, _, err := exhibit.Text(redis.Do(p.Context(),
		"EVAL", reserve, "3", d15flash.Stock, d15flash.Orders, requests, request))
	return answer == "ordered", err
}

// d15oneStep has the events of the exhibits: two come for one piece, an answer is lost, and nothing lies between the
// stock and the queue that could fail.
func d15oneStep(s *shop) {
	p := s.p
	s.open(1, true)
	a, b := p.Actor("A"), p.Actor("B")
	lineA, lineB := a.Line(s.redis.Addr(), ""), b.Line(s.redis.Addr(), "")
	lineA.LoseAnswer()
	p.Fate("The next answer of Redis to A will be lost.", "Redis 对 A 的下一个应答会丢失。")
	_, lost := ordered(p, lineA, "A")
	okB, errB := ordered(p, lineB, "B")
	a.Says("asks again, with the same request.", "用同一个请求号再问一次。")
	okA, errA := ordered(p, lineA, "A")
	p.Show(lost != nil && errA == nil && errB == nil && okA && !okB && s.left() == "0",
		"A learns what became of its order, and B is refused. The stock is 0, not below.",
		"A 知道了自己订单的结果，B 被拒绝。库存是 0，没有变成负数。")
	p.Show(s.redis.Ask("LLEN", d15flash.Orders) == int64(1),
		"One piece, one message: neither is there without the other. For this much no lock is needed.",
		"一件货，一条消息，两者缺一不可。做到这一步不需要锁。")
}

// d15booked is a consumer that dies after its commit. The next one gets the lock at the end of the lease.
func d15booked(s *shop) {
	p := s.p
	s.open(1, true)
	p.WatchLock("lock", s.redis.URL(), consumers)
	a := p.Actor("A")
	if ok, err := ordered(p, a.Dial(s.redis.Addr(), ""), "A"); !ok || err != nil {
		p.Fatal("nothing was ordered", err)
	}
	c1, c2 := p.Process("C1", s.redis.URL(), consumers, lease), p.Process("C2", s.redis.URL(), consumers, lease)
	for _, c := range []*play.Process{c1, c2} {
		c.Queue(s.redis, s.db.DSN())
	}
	c1.Lock()
	c1.Take()
	first := c1.Book()
	c1.Kill()
	s.deliverAgain(s.redis)
	c2.BeginLock()
	c2.Granted()
	c2.Take()
	second := c2.Book()
	c2.Acknowledge()
	p.Show(first && !second, "The order is the key of its row, so it is booked once, however often it comes.",
		"订单号就是那一行的主键，来多少次都只记一次账。")
	c2.Unlock()
	p.ShowAlone("Never were two consumers at work.", "任何时刻都没有两个消费者同时在干活。")
	p.Show(s.left() == "0" && s.db.Number() == 0 && s.db.Orders() == 1, "Redis, the queue and the database agree.",
		"Redis、队列和数据库一致。")
}

// consumers is the lock of who books orders.
const consumers = "consumers"
