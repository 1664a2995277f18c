package sqlsession

import "time"

// Owes notes that a statement is sent, which the server may take so long for.
func (c *Conn) Owes(allowed time.Duration) (sent time.Duration) {
	sent = c.d.Clock()
	c.allowed.Store(int64(allowed))
	c.busy.Store(int64(sent))
	return sent
}

// Answered takes in the end of a statement, and returns its error. A refusal is a sign of life too; broken says that it is
// none, but the end of the session, or that nobody knows what the server has done.
func (c *Conn) Answered(sent time.Duration, err error, broken bool) error {
	c.busy.Store(0)
	if !broken {
		c.Confirm(sent)
		return err
	}
	c.Break(err)
	return err
}

// Confirm notes that a statement was answered which was sent at that instant of Core.Clock.
func (c *Conn) Confirm(sent time.Duration) { c.confirmed.Store(int64(sent)) }

// Break ends the connection, which must not be used any more because of err. It is for who runs its statements.
func (c *Conn) Break(err error) {
	switch {
	case c.broken != nil:
	case err == nil:
		c.broken = ErrLost
	default:
		c.broken = err
	}
}

// Broken is why the connection is not used any more, or nil. It is for who runs its statements.
func (c *Conn) Broken() error { return c.broken }
