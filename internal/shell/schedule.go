package shell

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
	s := &c.Machine.Scheduler
	s.Armed = at
	if at == trust.Never {
		s.Timer.Stop()
		return
	}
	pause := at.Since(c.Reading())
	// The timer stands still while the machine is suspended. With this bound a suspension is noticed a second after it
	// at the latest.
	if c.Machine.Watching {
		pause = min(pause, core.SuspensionCheck)
	}
	s.Timer.Reset(pause)
}

// watch is the scheduler's goroutine. Close ends it.
func (c *Client) watch() {
	defer c.Machine.Scheduler.Timer.Stop()
	for {
		c.Lock()
		now := c.Machine.Now()
		// Before collect, because a suspension has brought all ends nearer.
		c.Machine.HeedSuspensions()
		batch := c.Machine.Collect(now)
		c.arm(min(c.Deadlocks.look(c, now), c.Machine.Scheduler.Next(now)))
		if len(batch) > 0 {
			c.Machine.Emit(core.Effect{Verb: core.SendRenewals, Batch: batch})
		}
		c.unlockInside()
		select {
		case <-c.Machine.Scheduler.Timer.C:
		case <-c.renewCtx.Done():
			return
		}
	}
}
