// Signs of life: when statements were sent and answered. Sessions of engines call these around each statement;
// heartbeat.go and driver.Session read them.

package sqlsession

import "time"

// Sent records that a statement is about to be sent, for which the server may take as long as allowed: without an
// answer by then the connection is closed. It returns the instant of [Core.Clock], which Answered wants. Only the
// goroutine that runs the statements of c may call it.
func (c *Conn) Sent(allowed time.Duration) (sent time.Duration) {
	sent = c.d.Clock()
	// allowed first: the heartbeat reads it only while busy is set.
	c.allowed.Store(int64(allowed))
	c.busy.Store(int64(sent))
	return sent
}

// Answered records the end of a statement that was sent at that instant, and returns err. A refusal by the server is a
// sign of life too. broken says that err is none, but the end of the session, or that nobody knows what the server has
// done: then the connection ends.
func (c *Conn) Answered(sent time.Duration, err error, broken bool) error {
	c.busy.Store(0)
	if !broken {
		c.Confirm(sent)
		return err
	}
	c.Fail(err)
	return err
}

// Confirm records a sign of life within a longer statement: the server has answered something that was sent at that
// instant of [Core.Clock]. Holds are trusted from there.
func (c *Conn) Confirm(sent time.Duration) { c.confirmed.Store(int64(sent)) }

// Fail ends the connection, which must not be used any more because of err; the first reason counts. Its holds are
// lost, and the server is told to end the session. Only the goroutine that runs its statements may call it, and it
// takes effect after the present one.
func (c *Conn) Fail(err error) {
	switch {
	case c.broken != nil:
	case err == nil:
		c.broken = ErrLost
	default:
		c.broken = err
	}
}

// Err returns why the connection is not used any more, or nil. Only the goroutine that runs its statements may call it.
func (c *Conn) Err() error { return c.broken }
