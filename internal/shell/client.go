package shell

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/core"
)

// otherClass is the class of locks that have none.
const otherClass = "other"

// Public is a client as its user has it in hand. The package above gives it its methods, by a conversion of the
// pointer.
type Public struct {
	_      core.NoCopy
	client Client
}

// Client returns the client, and nil of a nil Public.
func (p *Public) Client() *Client {
	if p == nil {
		return nil
	}
	return &p.client
}

// Public returns what the user of c has in hand, and nil of a nil Client.
func (c *Client) Public() *Public {
	if c == nil {
		return nil
	}
	return c.public
}

// Client is what stands around the state machine: it asks the engine, waits, renews, releases, and tells users.
type Client struct {
	public *Public // of which it is
	core.Machine
	// Set by New and constant from then on, down to recalls; the atomics guard themselves.
	Driver   driver.Driver
	renewer  driver.Renewer       // nil unless holds have leases, or sessions and the engine tells of recalls
	requeuer driver.Requeuer      // nil if the engine cannot requeue
	Bundler  driver.MultiAcquirer // nil if the engine cannot take several locks in one step
	Convert  driver.Converter     // nil if the engine cannot convert
	Config   Config
	Owned    bool   // Open made it, so Close closes the driver
	ID       string // random; the prefix of all request ids
	lastID   atomic.Uint64
	badLabel atomic.Bool // LabelFrom has returned an invalid label; later ones are logged at Debug

	renewCtx     context.Context //nolint:containedctx // ended by Close once nothing is pending: renewals end with it
	stopRenewals context.CancelFunc
	WaitsCtx     context.Context //nolint:containedctx // ended when Close begins: waits and questions end with it
	stopWaits    context.CancelFunc
	releaseCtx   context.Context //nolint:containedctx // ended when Close gives up: releases end with it
	stopReleases context.CancelFunc

	unconfirmed []error       // releases that were given up since Close began: its error
	Pending     int           // calls of Lease.Pending that are not over
	PendingDone chan struct{} // closed when pending becomes 0; nil unless Close waits for that

	Deadlocks deadlockDetector
	work      worker
}

// worker does what blocks. What a client is stands below what it does, so it knows the work by this interface alone.
type worker interface {
	// run does one effect.
	run(e *core.Effect)
	// disown gives back a hold that nobody got to know, without its MinHold.
	disown(ctx context.Context, h *core.Hold)
}

var _ core.Shell = shell{}

// CheckOpen returns ErrClosed once Close has begun.
func (c *Client) CheckOpen() error {
	c.Lock()
	defer c.Unlock()
	if c.Closed {
		return fmt.Errorf("interlock: %w", driver.ErrClosed)
	}
	return nil
}

// CoreOf returns the core, and nil of a nil Client.
func (c *Client) CoreOf() *core.Machine {
	if c == nil {
		return nil
	}
	return &c.Machine
}

// clientAround returns the client whose core c is.
func clientAround(c *core.Machine) *Client {
	own, _ := c.Shell.(shell)
	return own.c
}

// ClientOf returns the client of which m is a lock; nil if nobody has made m.
func ClientOf(m *core.Lock) *Client {
	if m.Core == nil {
		return nil
	}
	return clientAround(m.Core)
}

// CheckMade says why c cannot be used, or returns nil. The other types have a method of the same name.
func (c *Client) CheckMade() error {
	if c == nil || c.Driver == nil {
		return ErrNoClient
	}
	return nil
}

// CheckLock also returns what was wrong with the name or the options.
func CheckLock(m *core.Lock) error {
	if m == nil || m.Terms == nil {
		return errNoMutex
	}
	if m.Terms.Err != nil {
		return m.Terms.Err
	}
	return ClientOf(m).CheckMade()
}

// Config is what a client was configured with: the Options of the package above that are needed after New.
type Config struct {
	Lease, Renewal, Retain, CloseTimeout, LocalHandoffTime time.Duration
	LocalHandoffs                                          int
	ClientName, Store                                      string
	LabelFrom                                              func(ctx context.Context, label string) string
	Logger                                                 *slog.Logger // guarded
	Observer                                               *Listeners
}

// shell is a client as its core sees it. It has the methods that the core calls, so that users of a Client do not.
// All are called under Machine.Mu.
type shell struct{ c *Client }
