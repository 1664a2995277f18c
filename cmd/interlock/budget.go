// The time in which a job must be ended when its lock runs out. stage.go checks it before the lock is taken; job_end.go
// acts by it when renewals stop.

package main

import (
	"time"

	"github.com/interlock-go/interlock/driver"
)

// budget is the lease arithmetic of a run. When renewals stop being confirmed, this is the order of events, counted
// from the last confirmed one:
//
//	deadline - margin - grace   the job's group gets TERM
//	deadline - margin           the job's group gets KILL
//	deadline                    = lease - drift; the library stops trusting the lock
//	lease                       the engine gives the lock to somebody else
//
// A renewal that fails should have a second chance before the first of these, so two pauses between renewals have to
// fit in front of it.
type budget struct {
	lease   time.Duration // 0 on engines whose holds cannot run out
	renewal time.Duration // the pause between two renewals
	grace   time.Duration // between TERM and KILL
	drift   time.Duration // how much earlier than the lease the library stops trusting the lock
	margin  time.Duration // in which a KILL must have worked
	patient bool          // after INT or TERM the command may take any time; the grace is for what it leaves behind
}

const (
	// The largest grace that is chosen by itself, and the largest margin. A job that needs a longer grace asks for it
	// by --kill-grace.
	maxGrace  = 5 * time.Second
	maxMargin = 500 * time.Millisecond
)

// defaultGrace returns a grace with which the budget fits. Two pauses take two thirds of the lease, the margin a
// twentieth and the drift a hundredth; what is left beside a sixth covers the drift's 2 ms from a lease of 20 ms on.
func defaultGrace(lease time.Duration) time.Duration { return min(maxGrace, lease/6) }

// newBudget computes the parts that follow from lease and grace. The drift is the library's own allowance by which its
// deadline is earlier than the lease.
//
// A third of the lease, and the allowance of 1 % and 2 ms, are the library's (docs/rationale.md, The trust window and
// Renewal). They are repeated here because a job has to be ended before the library's own deadline and not at it.
func newBudget(lease, grace time.Duration) budget {
	return budget{
		lease:   lease,
		renewal: lease / 3,
		grace:   grace,
		drift:   lease/100 + 2*time.Millisecond,
		margin:  min(maxMargin, lease/20),
	}
}

// budget returns the budget for a run on this engine, or an error with the numbers if it does not fit. A hold that ends
// with the process cannot run out, so nothing has to fit there.
func (e *engine) budget(o *runOptions) (budget, error) {
	traits := e.driver.Traits()
	lease := o.lease
	switch traits.Lifetime {
	case driver.Process:
		if !o.graceGiven { // waiting loses nothing, and a KILL may spoil what the command is about to complete
			return budget{grace: maxGrace, patient: true}, nil
		}
		return budget{grace: o.grace}, nil
	case driver.Sessions:
		lease = traits.Timeout // what the server agreed to
	}
	b := newBudget(lease, o.grace)
	if o.onLost == "ignore" { // nothing is killed for a loss, so nothing has to fit
		return b, nil
	}
	return b, b.check()
}

// need is the shortest lease in which everything fits.
func (b budget) need() time.Duration { return 2*b.renewal + b.grace + b.drift + b.margin }

// check says with all numbers what does not fit. Nothing is adjusted in silence: a shorter grace might kill the job in
// the middle of a write, and a longer lease makes others wait.
func (b budget) check() error {
	if b.need() <= b.lease {
		return nil
	}
	return usage("the lease of %v is too short to end the job before it runs out: 2 x renewal %v + kill-grace %v + "+
		"drift %v + margin %v = %v; "+
		"lengthen --lease or shorten --kill-grace", b.lease, ms(b.renewal), b.grace, ms(b.drift), ms(b.margin),
		ms(b.need()))
}

// ms rounds for messages: a third of a lease may have nine decimals.
func ms(d time.Duration) time.Duration { return d.Round(time.Millisecond) }
