package resp

import (
	"context"
	"sync/atomic"
	"time"
)

// waiter is a goroutine that is inside of a Conn. The Conn's mu guards its fields.
type waiter struct {
	wake       chan struct{} // has one place; there may be something to do for it
	parked     bool          // it waits for wake
	prev, next *waiter       // in a waiterList
}

// rouse makes x look what there is to do. It may find nothing.
func (x *waiter) rouse() {
	select {
	case x.wake <- struct{}{}:
	default: // it has been roused, and will see this as well
	}
}

// waiterList is a list of waiters, the oldest first.
type waiterList struct {
	first, last *waiter
}

func (l *waiterList) add(x *waiter) {
	x.prev, x.next = l.last, nil
	if l.last == nil {
		l.first = x
	} else {
		l.last.next = x
	}
	l.last = x
}

func (l *waiterList) remove(x *waiter) {
	if x.prev == nil {
		l.first = x.next
	} else {
		x.prev.next = x.next
	}
	if x.next == nil {
		l.last = x.prev
	} else {
		x.next.prev = x.prev
	}
	x.prev, x.next = nil, nil
}

// request is what somebody has sent and waits for the answer of.
type request struct {
	waiter
	c      *Conn
	ctx    context.Context //nolint:containedctx // for who keeps the time, while the owner is parked
	trusts bool            // it is counted in trusting

	first    uint64    // the server can have run something of it only if the Conn has sent so much
	left     int       // answers that have not come yet
	bundled  int       // if it is the first of a bundle that was sent: how many these are
	sealed   time.Time // and when
	taught   bool      // and that the server is taught the script before, so that one more answer comes first
	listed   bool      // the answers go to list, else the only one to text
	summoned bool      // it was woken to do something
	given    bool      // up: nobody waits any more

	// What a subscription is confirmed with, if it is one: a push, not an answer.
	confirm, channel string

	done atomic.Bool // set last
	text string
	list []result
	err  error
}

// result is a server's answer to one command.
type result struct {
	value any // string, int64, nil, or []any of these
	err   error
}

func (c *Conn) newRequest() *request {
	p, _ := c.requests.Get().(*request)
	if p == nil {
		p = &request{waiter: waiter{wake: make(chan struct{}, 1)}, c: c}
	}
	p.left = 1
	return p
}

// recycle gives p back. There may still be something in wake, or come soon: whoever is roused must expect nothing.
func (p *request) recycle() {
	p.first, p.bundled, p.taught, p.listed, p.summoned, p.ctx = 0, 0, false, false, false, nil
	p.confirm, p.channel = "", ""
	p.text, p.list, p.err = "", nil, nil
	p.done.Store(false)
	p.c.requests.Put(p)
}

// finish says that the answers are there. It is called under mu, and p is not touched after it but for its wake.
func (p *request) finish() {
	p.unpark()
	p.done.Store(true)
}

// unpark says that the owner of p waits no longer. It is called under mu.
func (p *request) unpark() {
	if p.trusts {
		p.c.trusting--
	}
	p.parked, p.trusts = false, false
}

// queue is a queue of requests, as a ring.
type queue struct {
	ring    []*request // as many as a power of two
	head, n int
}

func (q *queue) at(i int) *request { return q.ring[(q.head+i)&(len(q.ring)-1)] }

// front returns the first, or nil if there is none.
func (q *queue) front() *request {
	if q.n == 0 {
		return nil
	}
	return q.ring[q.head]
}

func (q *queue) push(p *request) {
	if q.n == len(q.ring) {
		ring := make([]*request, max(16, 2*q.n))
		for i := range q.n {
			ring[i] = q.at(i)
		}
		q.ring, q.head = ring, 0
	}
	q.ring[(q.head+q.n)&(len(q.ring)-1)] = p
	q.n++
}

func (q *queue) pop() *request {
	p := q.front()
	if p == nil {
		return nil
	}
	q.ring[q.head] = nil
	q.head = (q.head + 1) & (len(q.ring) - 1)
	q.n--
	return p
}

// timer is a timer that Close waits for. The Conn's mu guards it.
type timer struct {
	c     *Conn
	timer *time.Timer
	isSet bool
}

// init makes the timer run f, under mu.
func (t *timer) init(c *Conn, f func()) {
	t.c = c
	t.timer = time.AfterFunc(time.Hour, func() {
		defer c.work.Done()
		c.mu.Lock()
		defer c.mu.Unlock()
		t.isSet = false
		if c.err == nil {
			f()
		}
	})
	t.timer.Stop()
}

// set sets the timer, unless it is set.
func (t *timer) set(d time.Duration) {
	if t.isSet || t.c.err != nil {
		return
	}
	t.isSet = true
	t.c.work.Add(1)
	t.timer.Reset(d)
}

func (t *timer) stop() {
	if t.isSet && t.timer.Stop() {
		t.isSet = false
		t.c.work.Done()
	}
}
