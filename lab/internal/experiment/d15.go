package experiment

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/interlock-go/interlock/internal/servers"
	"github.com/interlock-go/interlock/lab/exhibit"
	"github.com/interlock-go/interlock/lab/exhibit/d15flash"
	"github.com/interlock-go/interlock/lab/internal/play"
	"github.com/interlock-go/interlock/lab/internal/story"
)

func d15() *Experiment {
	return &Experiment{
		ID: "D15", Title: story.T("a flash sale: Redis, a queue, a database", "秒杀：Redis、队列、数据库"),
		Needs: []string{"redis", "mariadb"},
		About: story.T("The stock is counted in Redis, an order goes to a queue, and a consumer books it in the "+
			"database. That is fast, because no customer waits for the row of the stock; the last acts measure it. "+
			"But the three must agree, whatever fails between two of them.",
			"库存在 Redis 里计数，订单进队列，消费者把它记进数据库。这样很快，因为没有顾客等待库存那一行的行锁；最后几幕会测量。但不管哪两者之间"+
				"出了故障，三者都必须一致。"),
		run: func(p *play.Play) {
			s := &shop{p: p, redis: p.Redis(), queue: p.Redis(), db: p.MariaDB()}
			d15checked(s)
			d15belowZero(s)
			d15lost(s)
			d15givenBack(s)
			d15twice(s)
			d15synchronous(s)
			p.Sound("check, decrement and send in one step", "查、减、发消息合成一步")
			d15oneStep(s)
			p.Sound("the message is delivered twice, to consumers under one lock", "消息投递两次，消费者在同一把锁下")
			d15booked(s)
			p.Sound("the queue, with one consumer under the lock", "走队列，锁下只有一个消费者")
			d15queued(s)
		},
	}
}

// shop is a sale's servers.
type shop struct {
	p            *play.Play
	redis, queue *play.Redis
	db           *play.MariaDB
	direct       *pace // of the exhibit that books at once
}

// open opens a sale of n pieces.
func (s *shop) open(n int, keys bool) {
	s.p.Helper()
	for _, server := range []*play.Redis{s.redis, s.queue} {
		server.Ask("DEL", d15flash.Stock, d15flash.Orders, d15flash.Taken, requests)
	}
	s.redis.Ask("SET", d15flash.Stock, fmt.Sprint(n))
	s.p.Watch("Redis: stock", s.left)
	s.db.Sale(n, keys)
	s.p.Say("In stock: %d, in Redis and in the database.", "库存：%d，Redis 和数据库里都是。", n)
}

// left is the stock as Redis has it.
func (s *shop) left() string { return s.redis.Value(d15flash.Stock)() }

// customer is one who comes to the gate.
type customer struct {
	*play.Actor
	gate  *d15flash.Gate
	queue *play.Line
}

func (s *shop) customer(name string) *customer {
	s.p.Helper()
	return s.customerOver(name, s.queue.Addr())
}

// customerOver has a queue at another address: behind a cable.
func (s *shop) customerOver(name, queue string) *customer {
	s.p.Helper()
	c := &customer{Actor: s.p.Actor(name)}
	c.queue = c.Line(queue, "queue")
	c.gate = &d15flash.Gate{Redis: c.Dial(s.redis.Addr(), ""), Queue: c.queue}
	return c
}

// told is what the customer is told. If there was a piece, and the gate has not sold it, something went wrong.
func (c *customer) told(there, got bool, err error) {
	if err != nil || got != there {
		c.Says("is told: something went wrong. Nothing was ordered.", "得到的答复：出错了，没有下单。")
		return
	}
	if got {
		c.Says("is told: ordered.", "得到的答复：下单成功。")
		return
	}
	c.Says("is told: sold out.", "得到的答复：已售完。")
}

func d15checked(s *shop) {
	p := s.p
	p.Act("read, check, decrement", "先读，再查，再减")
	s.open(1, false)
	a, b := s.customer("A"), s.customer("B")
	var okA bool
	var err error
	pause := a.Until("DECR", func() { okA, err = a.gate.BuyChecked(p.Context(), "A") })
	a.Says("has seen one piece, and is about to take it.", "看到还有一件，正要拿走。")
	okB, errB := b.gate.BuyChecked(p.Context(), "B")
	b.told(true, okB, errB)
	pause.Resume()
	a.told(true, okA, err)
	p.Show(okA && okB && s.left() == "-1", "One piece, two orders, and the stock is -1.", "一件货，两个订单，库存是 -1。")
}

func d15belowZero(s *shop) {
	p := s.p
	p.Act("decrement, then check: below zero", "先减，再查：减到零以下")
	s.open(1, false)
	a, b, c := s.customer("A"), s.customer("B"), s.customer("C")
	buy := func(c *customer, there bool) bool {
		ok, err := c.gate.Buy(p.Context(), c.Name())
		c.told(there, ok, err)
		return ok
	}
	okA, okB := buy(a, true), buy(b, false)
	a.Says("cancels the order.", "取消订单。")
	if err := a.gate.GiveBack(p.Context()); err != nil {
		p.Fatal(err)
	}
	okC := buy(c, false)
	p.Show(okA && !okB && !okC && s.left() == "-1",
		"No piece is sold twice. But each refusal took one off: a piece is there, and nobody can buy it.",
		"没有一件货卖两次。但每次拒绝都减掉了一：货还在，却谁也买不到。")
}

// d15lost is a queue that does not answer.
func d15lost(s *shop) {
	p := s.p
	p.Act("the message is lost", "消息丢了")
	s.open(1, false)
	cable := servers.NewProxy(p, s.queue.Addr())
	a, b := s.customerOver("A", cable.Addr()), s.customer("B")
	cable.Refuse()
	cable.Reset()
	p.Fate("The cable between the gate and the queue is cut.", "下单服务和队列之间的网络断了。")
	ok, err := a.gate.Buy(p.Context(), "A")
	a.told(true, ok, err)
	p.Show(err != nil, "The piece is taken off in Redis, and no order is under way.", "Redis 里已经减掉了，却没有订单。")
	ok, err = b.gate.Buy(p.Context(), "B")
	b.told(false, ok, err)
	p.Show(err == nil && !ok && s.db.Number() == 1 && s.db.Orders() == 0,
		"The database has one piece, and nobody can buy it.", "数据库里还有一件，却谁也买不到。")
}

// d15givenBack is the compensation, when the message was not lost but the answer to it.
func d15givenBack(s *shop) {
	p := s.p
	p.Act("the stock is given back, and the message was not lost", "归还了库存，而消息其实没丢")
	s.open(1, false)
	a, b := s.customer("A"), s.customer("B")
	a.queue.LoseAnswer()
	p.Fate("The next answer of the queue will be lost.", "队列的下一个应答会丢失。")
	okA, err := a.gate.BuyOrGiveBack(p.Context(), "A")
	a.told(true, okA, err)
	okB, errB := b.gate.Buy(p.Context(), "B")
	b.told(true, okB, errB)
	first, errFirst := s.consumer("C1").Handle(p.Context())
	second, errSecond := s.consumer("C1").Handle(p.Context())
	p.Show(err == nil && errB == nil && errFirst == nil && errSecond == nil && !okA && okB && first && !second,
		"The database refuses the second order. It is B's, who was told that it has ordered; A gets what it "+
			"was refused.",
		"数据库拒绝了第二个订单，那是 B 的，而 B 得到的答复是下单成功；A 得到的答复是失败，却买到了。")
}

// consumer is one of the exhibit's.
func (s *shop) consumer(name string) *d15flash.Consumer {
	s.p.Helper()
	a := s.p.Actor(name)
	return &d15flash.Consumer{Queue: a.Dial(s.queue.Addr(), "queue"), DB: s.db.Session(a)}
}

// deliverAgain is what a queue does with an order that was not acknowledged.
func (s *shop) deliverAgain(queue *play.Redis) {
	s.p.Helper()
	queue.Ask("LMOVE", d15flash.Taken, d15flash.Orders, "LEFT", "RIGHT")
	s.p.Fate("The queue delivers again what was not acknowledged.", "队列把没有确认的消息再投递一次。")
}

func d15twice(s *shop) {
	p := s.p
	p.Act("the message is delivered twice", "消息投递了两次")
	s.open(10, false)
	a := s.customer("A")
	ok, err := a.gate.Buy(p.Context(), "A")
	a.told(true, ok, err)
	c1 := p.Actor("C1")
	first := &d15flash.Consumer{Queue: c1.Dial(s.queue.Addr(), "queue"), DB: s.db.Session(c1)}
	pause := c1.Until("LREM", func() { _, _ = first.Handle(p.Context()) })
	pause.Kill()
	p.Fate("C1 is killed before it acknowledges.", "C1 在确认之前被杀死。")
	s.deliverAgain(s.queue)
	booked, err := s.consumer("C2").Handle(p.Context())
	p.Show(err == nil && booked && s.db.Number() == 8 && s.db.Orders() == 2 && s.left() == "9",
		"One order, two rows in the books, and two pieces gone. Redis says 9 and the database 8.",
		"一个订单，账上两行，少了两件货。Redis 说 9，数据库说 8。")
}

// A rush is so many customers at once, each of which orders so often, for fewer pieces than that.
const (
	customers = 16
	orders    = 20
	pieces    = 300
)

// pace is what a rush was measured to be.
type pace struct {
	took   time.Duration // until the last one was answered
	waited atomic.Int64  // all of them together
	sold   atomic.Int64
	waits  int // for the row of the stock
	rowMS  int // and how long together
}

// perSecond is the throughput: answers in a second.
func (r *pace) perSecond() int { return int(customers * orders / r.took.Seconds()) }

// mean is how long a customer waits for an answer.
func (r *pace) mean() time.Duration { return time.Duration(r.waited.Load()) / (customers * orders) }

// rush has all of them order at once. buyers are their connections.
func (s *shop) rush(buyers []func(request string) (bool, error)) *pace {
	s.p.Helper()
	r := &pace{}
	waits, ms := s.db.RowLocks()
	var all sync.WaitGroup
	began := time.Now()
	for i, buy := range buyers {
		all.Go(func() {
			for n := range orders {
				asked := time.Now()
				ok, err := buy(fmt.Sprintf("%d-%d", i+1, n+1))
				if err != nil {
					s.p.Errorf("customer %d: %v", i+1, err)
					return
				}
				r.waited.Add(int64(time.Since(asked)))
				if ok {
					r.sold.Add(1)
				}
			}
		})
	}
	all.Wait()
	r.took = time.Since(began)
	r.waits, r.rowMS = s.db.RowLocks()
	r.waits -= waits
	r.rowMS -= ms
	return r
}

// tell tells what was measured.
func (s *shop) tell(r *pace) {
	s.p.Say("%d orders by %d customers at once: %s a second, each answered after %s. %d are sold, %d refused.",
		"%[2]d 个顾客同时下 %[1]d 个订单：每秒 %[3]s 个，平均 %[4]s 得到答复。卖出 %[5]d 件，拒绝 %[6]d 个。",
		customers*orders, customers, story.Volatile(r.perSecond(), "orders"),
		story.Volatile(r.mean().Round(10*time.Microsecond), "time"), r.sold.Load(), customers*orders-r.sold.Load())
}

// d15synchronous has the exhibit book at once. The sound act is held against its pace.
func d15synchronous(s *shop) {
	p := s.p
	p.Act("each order is booked while its customer waits", "顾客等着，订单同步记账")
	s.open(pieces, false)
	var buyers []func(string) (bool, error)
	for range customers {
		db := s.db.Quiet()
		buyers = append(buyers, func(request string) (bool, error) { return d15flash.Book(p.Context(), db, request) })
	}
	s.direct = s.rush(buyers)
	s.tell(s.direct)
	p.Show(s.direct.sold.Load() == pieces && s.db.Number() == 0 && s.db.Orders() == pieces,
		"That is right: nothing is sold twice, and no lock but the row's is needed.", "这是对的：没有一件卖两次，除了行锁也不需要别的锁。")
	p.Show(s.direct.waits > 0,
		"But all want one row: its lock was waited for %s times, %s ms together. That is the article's claim, and "+
			"so it is.",
		"但所有人都要同一行：等待行锁 %s 次，合计 %s 毫秒。文章是这么说的，确实如此。",
		story.Volatile(s.direct.waits, "waits"), story.Volatile(s.direct.rowMS, "time"))
}

func d15queued(s *shop) {
	p := s.p
	s.open(pieces, true)
	p.WatchLock("lock", s.redis.URL(), consumers)
	// Nobody waits for the end of this lease, and a busy machine may take its time for a transaction.
	c := p.Process("C", s.redis.URL(), consumers, 30*time.Second)
	c.Queue(s.redis, s.db.DSN())
	c.Lock()
	var buyers []func(string) (bool, error)
	for range customers {
		redis, err := s.redis.Dial(p.Context())
		if err != nil {
			p.Fatal(err)
		}
		p.Cleanup(func() { _ = redis.Close() })
		buyers = append(buyers, func(request string) (bool, error) { return ordered(p, redis, request) })
	}
	began := time.Now()
	waits, _ := s.db.RowLocks()
	c.BeginDrain(pieces)
	queued := s.rush(buyers)
	transactions := c.Drained()
	booked := time.Since(began)
	all, _ := s.db.RowLocks()
	s.tell(queued)
	p.Show(queued.sold.Load() == pieces && s.left() == "0" && s.db.Number() == 0 && s.db.Orders() == pieces,
		"The consumer has booked them in %s transactions, the last one %s after the first order. "+
			"Redis, the queue and the database agree.",
		"消费者用 %s 个事务记完了账，最后一个在第一个订单之后 %s。Redis、队列和数据库一致。",
		story.Volatile(transactions, "n"), story.Volatile(play.Short(booked), "time"))
	p.Show(all == waits, "Nobody waited for a row: who holds the lock is the only one that books.",
		"没有人等行锁：只有持锁者在记账。")
	p.Show(true, // it is a measurement: who reads it is to judge
		"%s times as many answers in a second as before. The price: \"ordered\" comes before the books know.",
		"每秒答复数是之前的 %s 倍。代价：答复“下单成功”时，账还没记。",
		story.Volatile(fmt.Sprintf("%.1f", float64(queued.perSecond())/float64(s.direct.perSecond())), "n"))
	c.Unlock()
}

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
