package interlock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/core"
	"github.com/interlock-go/interlock/internal/shell"
)

// Client: how it is opened, and how it ends. A call goes on in mutex.go and acquire.go; the client's clock,
// mutex, contexts and options are in the client_* files.

// Client takes locks on one engine. One client per process and engine is enough: its goroutines then queue locally and
// share renewals. It is safe for concurrent use. The zero value cannot be used, nor can a copy.
//
// A client has one goroutine while nothing is under way; locks that are held have none.
type Client shell.Public

// in returns what c is inside; nil of a nil Client.
func (c *Client) in() *shell.Client { return (*shell.Public)(c).Client() }

// publicOf returns what the user of c has in hand.
func publicOf(c *shell.Client) *Client { return (*Client)(c.Public()) }

// Open opens the engine that url names and returns a client of it. The scheme picks the engine, whose package must be
// imported for its side effect. mem:// (memlock) and file:// (filelock) come with this module, the others with modules
// of their own; see Engines in the package documentation. ctx bounds the opening and nothing else. Close also closes
// the engine's connections.
//
// Invalid options, an unknown scheme, a URL that the engine refuses and an engine that cannot be opened are errors.
// They show no password.
func Open(ctx context.Context, url string, opts *Options) (*Client, error) {
	if ctx == nil {
		return nil, shell.ErrNilContext
	}
	o, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	d, err := driver.DefaultMux.Open(ctx, url, driver.Config{Lease: o.Lease, Client: o.ClientName, Logger: o.Logger})
	if err != nil {
		return nil, fmt.Errorf("interlock: open: %w", err)
	}
	if o.Store == "" {
		o.Store = storeOf(url)
	}
	c, err := New(d, &o)
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	c.in().Owned = true
	return c, nil
}

// New returns a client of d. Close leaves d open: whoever opened it closes it. New asks no engine. It fails if d is
// nil, if an option is invalid or needs what the engine lacks, or if the engine's holds need renewals and the driver
// has none.
func New(d driver.Driver, opts *Options) (*Client, error) {
	if d == nil {
		return nil, errors.New("interlock: New: the driver is nil")
	}
	o, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	c, err := shell.NewClient(d, o.config(), shell.MachineSuspended)
	return publicOf(c), err
}

// Lock waits until the mutex of that name is held, and returns the hold. ctx bounds the waiting, nothing else: the hold
// goes on until [Lease.Unlock], or until it is lost. For errors and costs see [Mutex.Lock].
func (c *Client) Lock(ctx context.Context, name string) (*Lease, error) {
	return c.Mutex(name, nil).Lock(ctx)
}

// TryLock takes the mutex of that name if it is free. Otherwise the error is a *HeldError, which says who has it. For
// other errors and costs see [Mutex.TryLock].
func (c *Client) TryLock(ctx context.Context, name string) (*Lease, error) {
	return c.Mutex(name, nil).TryLock(ctx)
}

// Close ends the client. Calls that wait or ask the engine return ErrClosed, everything held is released (its leases
// then say ErrReleased), and no goroutine is left. It waits for the engine's confirmations for at most
// Options.CloseTimeout. It returns nil, or the releases that were not confirmed by then: those locks become free when
// their leases end. A second Close does nothing and returns nil at once.
//
// Locks still within their [LockOptions] MinHold stay unavailable until it expires, and abandoned ones
// ([Lease.Abandon]) until their lease has run out. Where the engine cannot do that by itself, one goroutine and the
// engine's connections outlive Close until then. Where a COMMIT is under way (see [Lease.Pending]) Close waits for its
// end, for half of CloseTimeout. After that the lock is not released either but runs out.
func (c *Client) Close() error {
	s := c.in()
	if err := s.CheckMade(); err != nil {
		return err
	}
	return s.Close()
}

// Adopt takes over a hold that another process has given away by a handle (lease_handle.go). What it returns is a hold
// like any other, except that it never passes on or stays after its Unlock.

// Adopt goes on with a hold that another process has given away by [Lease.Handle], or that "interlock acquire" has
// taken. In one step, with nobody in between, the hold becomes the lease that is returned, and the other process's
// lease ends. The new lease is renewed and unlocked like any other. The first to adopt a hold gets it. Everybody after
// that gets a *LostError, and so does whoever comes when the hold has ended.
//
// The lease has a new token: a fence that has seen its [Lease.Stamp] refuses what the other process still sends. So use
// that stamp once before you rely on it. Its owner is a new one without a name; its lease and label are those of the
// handle. Other LockOptions do not travel: MaxHold, MinHold and NoRenew end with the other process's lease.
//
// A handle of another engine gets ErrUnsupported, like one of another version of this package. A handle of another
// store, or of another database, prefix or name space, names a hold that is not there. The *LostError's Cause says so
// if the handle shows it. A hold of a named owner gets ErrUnsupported.
//
// If the engine does not answer (ErrUnavailable) the hold may have been adopted: it is then released in the background,
// which ends it. If another Adopt of the handle says that it is lost, it was adopted. It costs one round trip.
func (c *Client) Adopt(ctx context.Context, handle string) (*Lease, error) {
	s := c.in()
	if err := shell.CheckCall(s.CheckMade(), ctx); err != nil {
		return nil, err
	}
	adopter, err := s.Adopter()
	if err != nil {
		return nil, fmt.Errorf("interlock: adopt: %w", err)
	}
	h, m, err := parseHandle(s, handle)
	if err != nil {
		return nil, err
	}
	at := s.NewCall()
	lease, err := shell.AdoptLock(ctx, m, adopter, h, at)
	if err != nil {
		shell.TellFailed(ctx, m, nil, at, err)
		return nil, err
	}
	shell.TellAcquired(ctx, m, lease, at)
	return leaseOf(lease), nil
}

// parseHandle returns what a handle says, and the lock with the options that it asks for.
func parseHandle(c *shell.Client, handle string) (h driver.Handle, m *core.Lock, err error) {
	if h, err = driver.ParseHandle(handle); err != nil {
		return h, nil, fmt.Errorf("interlock: adopt: %w", err)
	}
	key := driver.Key{Kind: h.Kind, Name: h.Name}
	if err = h.Of(c.Traits); err == nil && h.Named {
		err = fmt.Errorf("the hold is that of a named owner, which stays its own: lock as the same owner: %w",
			ErrUnsupported)
	}
	if err != nil {
		return h, nil, shell.Wrap("adopt", key, err)
	}
	o := &LockOptions{Lease: h.Lease, Label: h.Label}
	switch h.Kind {
	case driver.KindMutex:
		m = publicOf(c).Mutex(h.Name, o).inner()
	case driver.KindRWMutex:
		m = publicOf(c).RWMutex(h.Name, o).modeMutex(h.Mode)
	case driver.KindSemaphore:
		m = publicOf(c).Semaphore(h.Name, h.Limit, o).permits(h.Weight)
	case driver.KindElection:
		o.Label = ""
		m = publicOf(c).Election(h.Name, o).candidate(h.Label)
	default:
		return h, nil, shell.Wrap("adopt", key, fmt.Errorf("a lock of kind %q: %w", h.Kind, ErrUnsupported))
	}
	return h, m, m.Terms.Err
}

// What a client's engine can do, for programs that choose by it.

// Traits describes the client's engine: its name, what ends a hold, which kinds of locks it has, and what it cannot do
// and why. It asks no engine and never changes; the slices are copies. A Client that was not made by Open or New has
// the zero Traits.
func (c *Client) Traits() driver.Traits {
	s := c.in()
	if s.CheckMade() != nil {
		return driver.Traits{}
	}
	t := s.Traits
	t.Kinds, t.Unsupported = slices.Clone(t.Kinds), slices.Clone(t.Unsupported)
	return t
}

// The name of the store, and with it the one order in which every process takes several locks (multi.go).

// storeOf names the store that a URL leads to: without user and password, and without what only says how to talk to it.
// Two processes with equivalent URLs must get the same name.
func storeOf(raw string) string {
	u, err := driver.ParseURL(raw)
	if err != nil {
		return "" // Open reports it
	}
	hosts := slices.Clone(u.Hosts)
	slices.Sort(hosts)
	parts := []string{u.Scheme, strings.Join(hosts, ","), u.Path}
	// These keys divide one server into several stores.
	for _, key := range []string{"db", "prefix", "table"} {
		parts = append(parts, u.Query.Get(key))
	}
	return strings.Join(parts, "|")
}

// What a careless caller may hold: a value that nobody has made, a copy of one, a nil context. Methods that return an
// error say so; the others panic with the same words. Every exported method begins with one of these checks.

var (
	errNoRWMutex    = errors.New("interlock: RWMutex was not made by Client.RWMutex")
	errNoSemaphore  = errors.New("interlock: Semaphore was not made by Client.Semaphore")
	errNoLatch      = errors.New("interlock: Latch was not made by Client.Latch")
	errNoCond       = errors.New("interlock: Cond was not made by Client.Cond")
	errNoElection   = errors.New("interlock: Election was not made by Client.Election")
	errNoMulti      = errors.New("interlock: Multi was not made by Client.Multi or MultiOf")
	errNoLease      = errors.New("interlock: Lease was not made by Lock")
	errNoMultiLease = errors.New("interlock: MultiLease was not made by Multi.Lock")
)

// modeMutex returns the lock in that mode, or one whose first call fails if m was not made by a client.
func (m *RWMutex) modeMutex(mode driver.Mode) *core.Lock {
	if m == nil || m.modes[mode].Terms == nil {
		return &core.Lock{Terms: &core.Terms{Err: errNoRWMutex}}
	}
	return &m.modes[mode]
}

func (s *Semaphore) checkMade() error {
	if s == nil || s.one.Load() == nil {
		return errNoSemaphore
	}
	return nil
}

func (l *Latch) checkMade() error {
	if l == nil || l.c == nil && l.err == nil {
		return errNoLatch
	}
	return l.err
}

func (c *Cond) checkMade() error {
	if c == nil || c.m == nil && c.err == nil {
		return errNoCond
	}
	return c.err
}

func (e *Election) checkMade() error {
	if e == nil || e.p == nil {
		return errNoElection
	}
	return e.p.Err
}

func (m *Multi) checkMade() error {
	if m == nil || len(m.order) == 0 && m.err == nil {
		return errNoMulti
	}
	return m.err
}

func (l *MultiLease) checkMade() error {
	if l == nil || len(l.leases) == 0 {
		return errNoMultiLease
	}
	return nil
}

// checkMade also refuses a copy: the end of the hold would not reach it, and it would go on saying that it is held.
func (l *Lease) checkMade() error {
	h := l.hold()
	switch {
	case h == nil || h.Lock == nil:
		return errNoLease
	case h.IsCopy():
		return fmt.Errorf("interlock: %s %q: the Lease is a copy: use the one that Lock returned", h.Lock.Key().Kind,
			h.Lock.Key().Name)
	}
	return nil
}
