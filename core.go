package interlock

import (
	"cmp"
	"sync"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/grants"
	"github.com/interlock-go/interlock/internal/trust"
)

// atOnce is how many locks, waits or ends are processed before other calls of the client get core.mu: about a tenth of
// a millisecond's work.
const atOnce = 64

// core is the state of a client. It changes under core.mu, at one instant for each event, and emits the work that
// follows from that: it calls no engine and no user, starts no goroutine and reads a clock in now alone.
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
	renewalFailed(g *grant, left time.Duration, again bool, err error)
	leftPending(g *grant)
}

// news is told when a retention is over.
type news interface{ end() }

// givenUp is a wait that gives a hold up, while the engine is asked.
type givenUp interface{ overtaken(lost *LostError) }

// lock is what a Mutex, a mode of an RWMutex, permits or a candidate is to the core: a name and terms.
type lock struct {
	c    *core
	name string
	p    *params // constant; shared by all locks without options
}

// key returns what the engine knows the lock by. It is composed when it is needed, because holds keep very many locks.
func (m *lock) key() driver.Key { return driver.Key{Kind: m.p.kind, Name: m.name} }

// now returns the instant at which everything under this Client.mu happens, and notices if the machine was suspended.
// The caller holds Client.mu.
func (c *core) now() trust.Instant {
	if c.instant == 0 {
		c.instant = c.env.Clock.Now()
		if c.watching {
			c.env.Suspensions.Look(c.instant)
		}
	}
	return c.instant
}

// verb says what an effect does.
type verb uint8

const (
	cancelContexts  verb = iota // contexts, with cause; it runs the user's functions (context.AfterFunc)
	sendRelease                 // give, of m, again and again until its outcome is known
	sendRequest                 // fetch
	sendRenewals                // batch
	sendLastRenewal             // batch, of one that is left to run out, again and again for that time
	renewForPass                // grant
	releaseAfter                // late, when its time has come
	finishRelease               // left, which giveUp has counted
	callUser                    // the Observer or the log, which may be slow although they must not be
)

// effect is one thing to do. What runs in the background is counted when it is emitted, so that Close waits for it.
type effect struct {
	verb     verb
	m        *lock
	give     *driver.Release
	fetch    *fetch
	grant    *grant
	late     *lateRelease
	after    time.Duration
	batch    []pendingRenewal
	contexts []*ending
	cause    error
	left     pendingRelease
	call     func()
	done     chan struct{} // of sendRelease: closed when its outcome is known; nil if nobody waits for that
}

// emit has e done as soon as Client.mu has been given up. The caller holds Client.mu.
func (c *core) emit(e effect) {
	switch e.verb {
	case cancelContexts, callUser:
	default:
		c.background.Add(1)
	}
	c.effects = append(c.effects, e)
}

// afterUnlock has f, which calls the user's code, called. The caller holds Client.mu.
func (c *core) afterUnlock(f func()) { c.emit(effect{verb: callUser, call: f}) }

// settle has r, of m, released in the background. The caller holds Client.mu.
func (c *core) settle(m *lock, r *driver.Release) {
	c.emit(effect{verb: sendRelease, m: m, give: r})
}

// hasLeases reports whether each hold has a lease of its own, which renewals lengthen.
func (c *core) hasLeases() bool { return c.traits.Lifetime == driver.Leases }

// hasSessions reports whether holds last as long as a session.
func (c *core) hasSessions() bool { return c.traits.Lifetime == driver.Sessions }

// compare orders mutexes in the same way in every process: by name, and mutexes of the same name by their store. So the
// name of a store matters only where several stores have a lock of the same name.
func compare(a, b *lock) int {
	return cmp.Or(
		cmp.Compare(a.name, b.name),
		cmp.Compare(a.c.store, b.c.store),
	)
}

// noCopy makes go vet (copylocks) report copies of a struct that has it as a field. It has no size.
type noCopy struct{}

// Lock is what go vet looks for.
func (*noCopy) Lock() {}

// Unlock is what go vet looks for.
func (*noCopy) Unlock() {}
