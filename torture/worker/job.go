// Package worker is one client process of a run: goroutines that take locks of interlock through its public API, count
// in the register under them, and record all of that. It is meant to be killed, stopped and cut off at any instant.
package worker

import (
	"fmt"
	"time"

	"github.com/interlock-go/interlock/torture/history"
)

// Job is what a process is told first, in JSON. When its input ends, it ends in order.
type Job struct {
	URL      string
	Register string // address
	Dir      string // of the histories
	Proc     int    // number of the process
	Life     int    // how often it was started before; the history's file is named by both
	Seed     uint64

	Goroutines int
	Clients    int // among which the goroutines are, in turn; 0 is one
	Names      []string
	Lease      time.Duration
	Hold       time.Duration // the mean; each hold lasts up to twice this, at random
	Patience   time.Duration // how long a Lock may wait
	Cancel     float64       // share of the Locks whose context ends at random before that
	MaxCycles  int           // for each goroutine; 0 is no bound
	Mixed      bool          // some of the work is more than to count under one lock
	Long       time.Duration // if not 0: each goroutine holds one lock of its own for so long, and ends
	// if not 0: most of the work is bursts of a mutex that is retained for so long after each hold
	Retain time.Duration
	Named  bool            // some of the owners that take a lock several times have a name
	Ends   bool            // the run is told of what ends something, before that is asked for
	Held   bool            // all of the work is holds of a mutex that last for Hold each
	Shares []history.Share // how locks may be shared on this engine
}

// Patience is how long a Lock may wait, unless its context ends at random, for locks of that lease on an engine that
// may need so long to heal: longer if everybody's holds, one after the other, take longer than some leases.
func Patience(lease, heal, oneByOne time.Duration) time.Duration {
	return heal + 2*lease + max(2*lease, oneByOne)
}

// FixedLease is how long a lease lasts that is meant to be overrun, where the others last for lease.
func FixedLease(lease time.Duration) time.Duration { return lease / 4 }

// ClientName is what operators see of the process. It comes back with the same when it was killed.
func (j *Job) ClientName() string { return fmt.Sprintf("proc-%d", j.Proc) }

// nameOf is that of one of the process's clients.
func (j *Job) nameOf(client int) string {
	if j.Clients > 1 {
		return fmt.Sprintf("%s.%d", j.ClientName(), client)
	}
	return j.ClientName()
}
