package experiment

import (
	"fmt"

	"github.com/interlock-go/interlock/internal/servers"
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
