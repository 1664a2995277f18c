package interlock

import (
	"github.com/interlock-go/interlock/internal/core"
	"github.com/interlock-go/interlock/internal/trust"
)

// When something is due: one goroutine and one timer for all holds of a client. It sends renewals (renew.go), ends what
// is over (internal/core/end.go), cooldowns and retentions, and runs the search for deadlocks (deadlock.go). A goroutine or a
// timer for each hold was refused (docs/adr/0005).

// arm sets the timer for that instant, and does not wake the goroutine now. To wake it would cost each hand-over more
// than its other work in this process. The goroutine would also want Machine.Mu while the caller still holds it. The
// caller holds Machine.Mu.
func (c *Client) arm(at trust.Instant) {
	s := &c.core.Scheduler
	s.Armed = at
	if at == trust.Never {
		s.Timer.Stop()
		return
	}
	pause := at.Since(c.reading())
	// The timer stands still while the machine is suspended. With this bound a suspension is noticed a second after it
	// at the latest.
	if c.core.Watching {
		pause = min(pause, core.SuspensionCheck)
	}
	s.Timer.Reset(pause)
}

// watch is the scheduler's goroutine. Close ends it.
func (c *Client) watch() {
	defer c.core.Scheduler.Timer.Stop()
	for {
		c.lock()
		now := c.core.Now()
		// Before collect, because a suspension has brought all ends nearer.
		c.core.HeedSuspensions()
		batch := c.core.Collect(now)
		c.arm(min(c.deadlocks.look(c, now), c.core.Scheduler.Next(now)))
		if len(batch) > 0 {
			c.core.Emit(core.Effect{Verb: core.SendRenewals, Batch: batch})
		}
		c.unlockInside()
		select {
		case <-c.core.Scheduler.Timer.C:
		case <-c.base.Done():
			return
		}
	}
}
