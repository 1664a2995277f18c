package experiment

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/interlock-go/interlock/lab/exhibit/d15flash"
	"github.com/interlock-go/interlock/lab/internal/play"
	"github.com/interlock-go/interlock/lab/internal/story"
)

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
