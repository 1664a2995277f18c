package interlock

import (
	"github.com/interlock-go/interlock/internal/trust"
)

// When something is due: one goroutine and one timer for all holds of a client. It sends renewals (renew.go), ends what
// is over (core_end.go), cooldowns and retentions, and runs the search for deadlocks (deadlock.go). A goroutine or a
// timer for each hold was refused (docs/adr/0005).

// arm sets the timer for that instant, and does not wake the goroutine now. To wake it would cost each hand-over more
// than its other work in this process. The goroutine would also want Client.mu while the caller still holds it. The
// caller holds Client.mu.
func (c *Client) arm(at trust.Instant) {
	s := &c.sched
	s.armed = at
	if at == trust.Never {
		s.timer.Stop()
		return
	}
	pause := at.Since(c.reading())
	// The timer stands still while the machine is suspended. With this bound a suspension is noticed a second after it
	// at the latest.
	if c.watching {
		pause = min(pause, suspensionCheck)
	}
	s.timer.Reset(pause)
}

// watch is the scheduler's goroutine. Close ends it.
func (c *Client) watch() {
	defer c.sched.timer.Stop()
	for {
		c.lock()
		now := c.now()
		// Before collect, because a suspension has brought all ends nearer.
		c.heedSuspensions()
		batch := c.collect(now)
		c.arm(min(c.deadlocks.look(c, now), c.sched.next(now)))
		if len(batch) > 0 {
			c.emit(effect{verb: sendRenewals, batch: batch})
		}
		c.unlockInside()
		select {
		case <-c.sched.timer.C:
		case <-c.base.Done():
			return
		}
	}
}
