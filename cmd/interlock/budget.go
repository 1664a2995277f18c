package main

import (
	"time"

	"github.com/interlock-go/interlock/driver"
)

// budget is the lease arithmetic of a run. When renewals stop being confirmed, this is the order of events, counted
// from the last renewal that was:
//
//	deadline - margin - grace   the job's group gets TERM
//	deadline - margin           the job's group gets KILL
//	deadline                    = lease - drift; the library stops trusting the lock
//	lease                       the engine gives the lock to somebody else
//
// For a renewal that fails to have a second chance before the first of these, two pauses between renewals have to fit
// in front.
type budget struct {
	lease   time.Duration // 0 on engines whose holds cannot run out
	renewal time.Duration
	grace   time.Duration
	drift   time.Duration
	margin  time.Duration
	patient bool // after INT or TERM the command has all the time that it takes; the grace is for what it leaves behind
}

const (
	maxGrace  = 5 * time.Second
	maxMargin = 500 * time.Millisecond
)

// defaultGrace leaves the arithmetic satisfied for every lease.
func defaultGrace(lease time.Duration) time.Duration { return min(maxGrace, lease/6) }

// newBudget computes the parts that follow from lease and grace. The margin is the time in which a kill must have
// worked; the drift is the library's own allowance, by which its deadline is earlier than the lease.
func newBudget(lease, grace time.Duration) budget {
	return budget{
		lease:   lease,
		renewal: lease / 3,
		grace:   grace,
		drift:   lease/100 + 2*time.Millisecond,
		margin:  min(maxMargin, lease/20),
	}
}

// budget is the one for a run on this engine, or an error with the numbers if it does not fit.
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

// need is what the lease must be at least.
func (b budget) need() time.Duration { return 2*b.renewal + b.grace + b.drift + b.margin }

func (b budget) check() error {
	if b.need() <= b.lease {
		return nil
	}
	return usage("the lease of %v is too short to end the job before it runs out: 2 x renewal %v + kill-grace %v + "+
		"drift %v + margin %v = %v; "+
		"lengthen --lease or shorten --kill-grace", b.lease, ms(b.renewal), b.grace, ms(b.drift), ms(b.margin),
		ms(b.need()))
}

func ms(d time.Duration) time.Duration { return d.Round(time.Millisecond) }
