// Interrupting a wait in the server. wait.go calls it when a waiting request is not wanted any more.

package sqlsession

import "time"

const (
	// interruptFirst and interruptMost bound the pauses between interruptions of one wait. An interruption that arrives
	// before the wait has begun does nothing, so it is repeated.
	interruptFirst = 3 * time.Millisecond
	interruptMost  = 100 * time.Millisecond

	// interruptTime is the time after which the connection is given up instead.
	interruptTime = time.Second
)

// interrupt ends a wait in the server, over another connection, and returns its verdict. It runs in the goroutine of
// the wait.
func (e *Entry) interrupt(c *Conn, answer <-chan verdict) verdict {
	end := time.NewTimer(interruptTime)
	defer end.Stop()
	for pause := interruptFirst; ; pause = min(2*pause, interruptMost) {
		word := make(chan error, 1)
		e.d.OnShared(Job{
			Run:  func(shared *Conn) { word <- shared.session.Interrupt(c) },
			Dead: func(error) { word <- nil }, // nothing was sent
		})
		select {
		case err := <-word:
			if err != nil {
				// It may still hit the connection later, when something else runs on it.
				e.d.taint(c)
			}
		case <-end.C:
			e.d.taint(c)
			c.Kill()
			return <-answer
		}
		timer := time.NewTimer(pause)
		select {
		case v := <-answer:
			timer.Stop()
			return v
		case <-timer.C:
		case <-end.C:
			timer.Stop()
			c.Kill()
			return <-answer
		}
	}
}

// taint records that c must not be used again, because an interruption may hit it at any time.
func (d *Core) taint(c *Conn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	c.tainted = true
}
