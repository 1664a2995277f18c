package sqlsession

import "time"

const (
	// interruptFirst and interruptMost are the pauses between interruptions of a wait: one that arrives before the wait
	// has begun does nothing.
	interruptFirst = 3 * time.Millisecond
	interruptMost  = 100 * time.Millisecond

	// interruptTime is after how long the connection is given up instead.
	interruptTime = time.Second
)

// interrupt ends a wait in the server, over another connection, and returns its verdict.
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

// taint says that c must not be used again, because an interruption may hit it at any time.
func (d *Core) taint(c *Conn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	c.tainted = true
}
