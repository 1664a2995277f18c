// Signs of life: when statements were sent and answered. Sessions of engines call these around each statement;
// heartbeat.go and driver.Session read them.
//
// Not every answer is a sign of life. Between here and the server there may be a proxy that answers by itself, with an
// error when its own connection has broken, or that asks a replica where a statement only reads, or another session. So
// trust counts from a grant, which only the session that has the lock can give, and from Session.Ping, which finds out
// that the same session answers. Pings are sent however busy a connection is.

package sqlsession

import "time"

// Sent records that a statement is about to be sent, for which the server may take as long as allowed: without an
// answer by then the connection is closed. It returns the instant of [Core.Clock], which Answered wants. Only the
// goroutine that runs the statements of c may call it.
func (c *Conn) Sent(allowed time.Duration) (sent time.Duration) {
	sent = c.d.Clock()
	c.sent = sent
	// allowed first: the heartbeat reads it only while busy is set.
	c.allowed.Store(int64(allowed))
	c.busy.Store(int64(sent))
	return sent
}

// Answered records the end of a statement, and returns err. broken says that err is the end of the session, or that
// nobody knows what the server has done: then the connection ends.
func (c *Conn) Answered(err error, broken bool) error {
	c.busy.Store(0)
	if broken {
		c.Fail(err)
	}
	return err
}

// Confirm records a sign of life: this session, on the server that grants, has answered what was sent at that instant
// of [Core.Clock]. Holds are trusted from there. An engine calls it for the set-up and in Session.Ping.
func (c *Conn) Confirm(sent time.Duration) {
	c.confirmed.Store(int64(sent))
	c.pinged.Store(int64(sent))
}

// confirmGrant records that the last statement has brought a grant. It leaves the next ping due when it was. Only the
// goroutine that runs the statements of c may call it.
func (c *Conn) confirmGrant() { c.confirmed.Store(int64(max(c.sent, c.lastSign()))) }

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
