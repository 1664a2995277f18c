// Requests and waiters: who is inside a Conn and what it waits for. call.go and await.go make them, read.go completes
// them.

package resp

import (
	"context"
	"sync/atomic"
	"time"
)

// waiter is a goroutine that is inside a Conn. The Conn's mu guards its fields.
type waiter struct {
	wake       chan struct{} // buffer of one: there may be something to do for it
	parked     bool          // it waits for wake
	prev, next *waiter       // its neighbours in a waiterList
}

// rouse makes x look for something to do. It may find nothing. It does not block, and may be called with or without mu.
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

// request is what a goroutine has sent and awaits the answer of: one command, several, a subscription, or a part of a
// bundle.
type request struct {
	waiter
	c      *Conn
	ctx    context.Context //nolint:containedctx // for keepTime, while the owner is parked
	trusts bool            // it is counted in Conn.trusting

	first    uint64    // the server may have run something of it only if the Conn has sent so many bytes
	left     int       // how many answers have not come yet
	bundled  int       // on the first of a sent bundle: how many requests it has
	sealed   time.Time // and when it was made a command
	taught   bool      // and that the lesson's answer comes before theirs
	listed   bool      // the answers go to list; otherwise the only one goes to text
	summoned bool      // it was woken to do something
	given    bool      // given up: nobody waits any more

	// The push that confirms a subscription, if it is one: it has no other answer.
	confirm, channel string

	done atomic.Bool // set last, so that the owner may read the rest without mu
	text string
	list []result
	err  error
}

// result is a server's answer to one command.
type result struct {
	value any // string, int64, nil, or []any of these
	err   error
}

// newRequest returns a request that awaits one answer.
func (c *Conn) newRequest() *request {
	p, _ := c.requests.Get().(*request)
	if p == nil {
		p = &request{waiter: waiter{wake: make(chan struct{}, 1)}, c: c}
	}
	p.left = 1
	return p
}

// recycle gives p back. A signal may still be in wake, or come soon, so whoever is roused must not expect to find
// something.
func (p *request) recycle() {
	p.first, p.bundled, p.taught, p.listed, p.summoned, p.ctx = 0, 0, false, false, false, nil
	p.confirm, p.channel = "", ""
	p.text, p.list, p.err = "", nil, nil
	p.done.Store(false)
	p.c.requests.Put(p)
}

// finish says that the answers are there. From then on p is the owner's; others may only send to wake. The caller holds
// mu.
func (p *request) finish() {
	p.unpark()
	p.done.Store(true)
}

// unpark says that the owner of p does not wait any more. The caller holds mu.
func (p *request) unpark() {
	if p.trusts {
		p.c.trusting--
	}
	p.parked, p.trusts = false, false
}

// queue is a queue of requests in a ring, so that it allocates only when it grows. The Conn's mu guards it.
type queue struct {
	ring    []*request // its length is a power of two
	head, n int
}

// at returns the request at position i, from the front.
func (q *queue) at(i int) *request { return q.ring[(q.head+i)&(len(q.ring)-1)] }

// front returns the first request, or nil if there is none.
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

// timer is a timer for which Close waits. The Conn's mu guards it.
type timer struct {
	c     *Conn
	timer *time.Timer
	isSet bool
}

// init makes the timer run f, under mu, unless the Conn has ended.
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

// set starts the timer, unless it runs.
func (t *timer) set(d time.Duration) {
	if t.isSet || t.c.err != nil {
		return
	}
	t.isSet = true
	t.c.work.Add(1)
	t.timer.Reset(d)
}

// stop stops the timer. If it has fired already, its function still runs and counts itself out.
func (t *timer) stop() {
	if t.isSet && t.timer.Stop() {
		t.isSet = false
		t.c.work.Done()
	}
}
