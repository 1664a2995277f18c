package pglock

import (
	"math/rand/v2"
	"time"
)

// poll is a wait without a connection of its own: after a pause it tries once. It reports whether the request is settled.
func (e *entry) poll() (done bool) {
	d := e.d
	if e.told == nil && e.lookAndTell() {
		return false
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

// lookAndTell asks who is in the way, so that the caller is told before he waits. It reports that the wait is stopped.
func (e *entry) lookAndTell() bool {
	word := make(chan struct{})
	e.d.onShared(job{
		run: func(c *conn) {
			defer close(word)
			r, err := c.look(e.number())
			if err == nil {
				e.tell(r.heldError(e.r.Key))
			}
		},
		dead: func(error) { close(word) }, // the try will find out
	})
	select {
	case <-word:
		return false
	case <-e.stop:
		return true
	}
}

// pollOnce tries once over a shared connection, unless the lock is this driver's or being asked for by it.
func (e *entry) pollOnce() (done bool) {
	d := e.d
	d.mu.Lock()
	p := d.place(e.num)
	if p.asker != nil || len(p.owners) > 0 || e.ending {
		d.tidy(e.num)
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
	a, err := e.take(c)
	switch {
	case c.broken != nil:
		return true // died settles it
	case err != nil:
		return e.polled(err)
	case a.granted:
		e.granted(c, a.token, a.last)
		return true
	case a.foreign:
		e.moveOn(c)
		return true
	}
	return e.polled(nil)
}

// polled ends a turn that brought nothing.
func (e *entry) polled(err error) (done bool) {
	if err != nil {
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
