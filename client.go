package interlock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/shell"
)

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
