// Polling: waits for which the pool has no connection. wait.go calls poll; the tries are those of ask.go.

package sqlsession

import (
	"errors"
	"math/rand/v2"
	"time"
)

// poll is a wait without a connection of its own: after a pause it tries once. It reports whether the request is
// settled.
func (e *Entry) poll() (done bool) {
	d := e.d
	// The caller is told who is in the way before the first pause.
	if !e.HasSeen() && !e.look() {
		return false
	}
	d.mu.Lock()
	d.polling++
	pause := pollPause(d.polling, d.pool.slow)
	d.mu.Unlock()
	defer func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.polling--
	}()
	timer := time.NewTimer(pause)
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

// slowPoll is the longest pause between polls of a server that was too slow to open connections mostSlow times or more.
const slowPoll = 20 * time.Millisecond << (2 * mostSlow)

// pollPause is about 20 ms. It is longer in a crowd, which together asks at most some 500 times a second. It is also
// longer for a server that is too slow to open connections, up to 1.3 s. That bound holds for a crowd too, whose pauses
// would be minutes otherwise: nothing ends them when the server has recovered or the lock is free.
func pollPause(crowd, slow int) time.Duration {
	mean := max(20*time.Millisecond, time.Duration(crowd)*2*time.Millisecond)
	mean = max(mean, min(mean<<(2*slow), slowPoll))
	return mean/2 + rand.N(mean)
}

// look asks who is in the way, so that the caller is told before it waits. It returns false if the wait is stopped.
func (e *Entry) look() bool {
	word := make(chan struct{})
	e.d.OnShared(Job{
		Run: func(c *Conn) {
			defer close(word)
			c.session.Look(e)
		},
		Dead: func(error) { close(word) }, // the try will find out
	})
	select {
	case <-word:
		return true
	case <-e.stop:
		return false
	}
}

// pollOnce tries once over a shared connection, unless the lock is this core's or being asked for by it.
func (e *Entry) pollOnce() (done bool) {
	d := e.d
	d.mu.Lock()
	p := d.lockState(e.lock)
	if p.asker != nil || p.keepOut(e) || e.ending {
		d.tidy(e.lock)
		d.mu.Unlock()
		return false
	}
	p.asker = e
	d.mu.Unlock()
	word := make(chan bool, 1)
	d.onSharedBeside(e, Job{
		Run:  func(c *Conn) { word <- e.pollTry(c) },
		Dead: func(err error) { word <- e.polled(err) },
	})
	return <-word // a statement without an answer ends with its connection
}

// pollTry is one try, in the connection's goroutine.
func (e *Entry) pollTry(c *Conn) (done bool) {
	if !e.begins(c) {
		return false
	}
	a, err := c.session.Try(e)
	switch {
	case c.broken != nil && errors.Is(err, ErrUnasked):
		return e.polled(nil) // the next turn is on another connection
	case c.broken != nil:
		return true // died settles it
	case errors.Is(err, ErrUnsure):
		e.doubts(c, err)
		return true
	case err != nil:
		return e.polled(err)
	case a.Granted:
		e.accept(c, a)
		return true
	case a.Foreign:
		e.moveOnOver(c)
		return true
	}
	return e.polled(nil)
}

// polled ends a turn that brought nothing. It reports true if the error ends the request.
func (e *Entry) polled(err error) (done bool) {
	if err != nil && !errors.Is(err, ErrLost) { // ErrLost: the connection had ended and was not asked
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
