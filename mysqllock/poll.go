package mysqllock

import (
	"errors"
	"math/rand/v2"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// poll is a wait without a connection of its own: after a pause it tries once. It reports whether the request is settled.
func (e *entry) poll() (done bool) {
	d := e.d
	if !e.hasTold() {
		held, _, ok := e.lookOnce()
		if ok {
			e.tellSeen(held)
		}
	}
	d.mu.Lock()
	d.polling++
	crowd := d.polling
	d.mu.Unlock()
	defer func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.polling--
	}()
	timer := time.NewTimer(pollPause(crowd))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-d.pool.freed:
		return false // fromPool finds out whether it was quick enough
	case <-e.stop:
		return false // wait ends it
	}
	return e.pollOnce()
}

// pollPause is about 20 ms, and longer in a crowd, which together asks at most some 500 times a second.
func pollPause(crowd int) time.Duration {
	mean := max(20*time.Millisecond, time.Duration(crowd)*2*time.Millisecond)
	return mean/2 + rand.N(mean)
}

// sight is what a look has found.
type sight struct {
	held   *driver.HeldError
	heldBy uint64
	err    error
}

// lookOnce asks over a shared connection who has the lock. It is not ok if there was no answer, or the wait is stopped.
func (e *entry) lookOnce() (held *driver.HeldError, heldBy uint64, ok bool) {
	word := make(chan sight, 1)
	e.d.onShared(job{
		run: func(c *conn) {
			var s sight
			s.held, s.heldBy, s.err = c.look(e.r.Key, e.id)
			word <- s
		},
		dead: func(err error) { word <- sight{err: err} },
	})
	select {
	case s := <-word:
		return s.held, s.heldBy, s.err == nil
	case <-e.stop:
		return nil, 0, false
	}
}

// pollOnce tries once over a shared connection, unless the lock is this driver's or being asked for by it.
func (e *entry) pollOnce() (done bool) {
	d := e.d
	d.mu.Lock()
	p := d.place(e.id)
	if p.asker != nil || len(p.owners) > 0 || e.ending {
		d.tidy(e.id)
		d.mu.Unlock()
		return false
	}
	p.asker = e
	d.mu.Unlock()
	word := make(chan bool, 1)
	d.onShared(job{
		run:  func(c *conn) { word <- e.pollTry(c) },
		dead: func(err error) { word <- e.polled(err) },
	})
	return <-word // a statement that is not answered ends with its connection
}

func (e *entry) pollTry(c *conn) (done bool) {
	if !e.begins(c) {
		return false
	}
	value, ok, err := e.take(c, stmtTry)
	switch {
	case c.broken != nil:
		return true // died settles it
	case ok:
		e.granted(c, value)
		return true
	}
	return e.polled(err)
}

// polled ends a turn that brought nothing.
func (e *entry) polled(err error) (done bool) {
	if err != nil && !errors.Is(err, errLost) { // of a connection that has ended, which was not asked
		e.fail(err)
		return true
	}
	d := e.d
	d.mu.Lock()
	e.leaves()
	next := d.asked(e)
	d.mu.Unlock()
	runAll(next)
	return false
}
