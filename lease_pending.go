package interlock

import "github.com/interlock-go/interlock/internal/shell"

// Pending marks a hold under which something is under way that nobody can stop. lease_abandon.go lets such a lock run
// out; internal/core/end.go and Close (interlock.go) ask isPending before they would give it back.

// Pending says that something is under way under this hold which nobody can stop and whose outcome is not known yet,
// such as the COMMIT of a transaction. Until over is called, only the holder gives the lock back before its time.
// Everything else that would do so leaves it to run out instead, as [Lease.Abandon] does. That is the end of MaxHold,
// of a lease that is not renewed, or of trust, and [Client.Close]. Close first waits for over, for half of its
// CloseTimeout. Package locktx uses it.
//
// Nothing else changes. The hold is renewed and lost as before, Unlock gives it back, and Break by an operator takes it
// away. Pending asks no engine. It fails like Err when the hold has ended, and with ErrClosed when the client is being
// closed: then begin nothing. Call over in the end, once the holder has unlocked or abandoned the hold; further calls
// of it do nothing.
func (l *Lease) Pending() (over func(), err error) {
	h := l.hold()
	if err := l.checkMade(); err != nil {
		return nil, err
	}
	c := shell.ClientOfLock(h.Lock)
	c.Lock()
	defer c.Unlock()
	h.Check(c.Machine.Now())
	if err := h.Ended(); err != nil {
		return nil, shell.Wrap("use", h.Lock.Key(), err)
	}
	if c.Machine.Closed {
		return nil, shell.Wrap("use", h.Lock.Key(), ErrClosed)
	}
	h.Pending++
	c.Pending++
	done := false
	return func() {
		c.Lock()
		defer c.Unlock()
		if done {
			return
		}
		done = true
		h.Pending--
		c.Pending--
		if c.Pending == 0 && c.PendingDone != nil {
			close(c.PendingDone)
			c.PendingDone = nil
		}
	}, nil
}
