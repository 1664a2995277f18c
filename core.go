package interlock

import (
	"context"
	"sync"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/grants"
	"github.com/interlock-go/interlock/internal/trust"
)

// core is the state of a client. It changes under core.mu, at one instant for each event, and what is to be done is
// emitted: it calls no engine and no user, starts no goroutine and reads a clock in now alone.
type core struct {
	shell    shell  // the *Client around it; see client
	store    string // Options.Store
	hears    bool   // the Observer has Acquired
	renews   bool   // the engine has to be asked for renewals
	requeues bool   // the engine can requeue
	converts bool   // the engine can convert
	traits   driver.Traits
	defaults params // of a lock without options of its own
	env      grants.Env
	recalls  bool // the engine tells a holder when another client wants the lock
	watching bool // holds have a trust window, so suspensions of the machine matter

	background sync.WaitGroup // every goroutine of the client

	mu      sync.Mutex          // guards what follows, and every queue, grant, lease and fetch; see client_lock.go
	effects []effect            // what is done when mu has been given up; see emit
	instant trust.Instant       // of what happens under this mu; 0 until now is asked for
	closed  bool                // Close has begun: nothing new may start
	queues  map[queueKey]*queue // the lines of waiters; empty lines are removed
	// by grant.listName, the first of a list each: everything that the engine gave, until it is released or lost
	grants map[string]*grant
	alone  map[*waiter]struct{} // waiters that stand in no line; see askAlone
	// grants that others must not get yet, held or not; nil until there is one
	cooldowns map[*grant]*cooldown
	failures  map[*grant]error // how the last renewal failed, of those of which it did; nil until one did
	// locks left to run out whose release is still to come; nil until there is one
	runningOut map[*lateRelease]struct{}
	sched      scheduler
	retention  retention
}

// shell is what the core asks of the client around it, under core.mu. None of it blocks.
type shell interface {
	newFetch(w *waiter, try bool) *fetch
	newID() string
	suspectDeadlock(o *owner)
	arm(at trust.Instant)
	// What the Observer and the log are told once core.mu has been given up.
	lost(l *Lease, lost *LostError)
	adopted(l *Lease)
	retained(g *grant) news
	renewalConfirmed(g *grant, left, lease time.Duration)
	renewalFailed(g *grant, left time.Duration, err error)
	leftPending(g *grant)
}

// news is told when a retention is over.
type news interface{ end() }

// givenUp is a wait that gives a hold up, while the engine is asked.
type givenUp interface{ overtaken(lost *LostError) }

// ending is something that ends with a hold.
type ending struct{ cancel context.CancelCauseFunc }

// lock is what a Mutex, a mode of an RWMutex, permits or a candidate is to the core: a name and terms.
type lock struct {
	c    *core
	name string
	p    *params // constant; shared by all locks without options
}

// key returns what the engine knows the lock by. It is composed when it is needed, because holds keep very many locks.
func (m *lock) key() driver.Key { return driver.Key{Kind: m.p.kind, Name: m.name} }
