package interlock

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/interlock-go/interlock/internal/shell"
)

// What a client is configured with, its defaults and its checks. options_lock.go has the options of one lock;
// interlock.go applies both.

const (
	defaultLease        = 30 * time.Second
	defaultCloseTimeout = 5 * time.Second

	// defaultLocalHandoffs and defaultLocalHandoffTime bound how long one process may keep a lock that others wait for.
	// A hand-over to another process takes about as long as a hundred empty passes, so 63 of them left most of the time
	// to hand-overs. Where work is done under the lock, defaultLocalHandoffTime is over first.
	defaultLocalHandoffs    = 255
	defaultLocalHandoffTime = 10 * time.Millisecond

	// minLease leaves room for the drift allowance; see trustEnd. minRenewal keeps a typing mistake from flooding the
	// engine.
	minLease   = 10 * time.Millisecond
	minRenewal = time.Millisecond

	// longest bounds all durations, about 50 years: sums of a few of them fit into a time.Duration. mostPasses bounds
	// LocalHandoffs.
	longest    = 50 * 365 * 24 * time.Hour
	mostPasses = 1_000_000
)

// Options configures a client. nil means all defaults. A client copies what it needs, so a later change of the struct
// has no effect.
type Options struct {
	// Lease is how long a hold lasts in the engine after the last renewal that reached it. It is the time for which
	// others wait after a crash of the holder. Too short, and a slow network loses locks; too long, and a crash blocks
	// others for long. It must be at least 10 ms. Engines with sessions take it as the session's timeout. The default
	// is 30 s.
	Lease time.Duration

	// Renewal is the interval between two renewals. Too long, and one slow reply loses the lock; too short, and idle
	// holders load the server. It must be less than half of Lease. The default is a third of Lease.
	Renewal time.Duration

	// ClientName tells operators who holds and who waits. At most 256 bytes of UTF-8. The default is "host:pid".
	ClientName string

	// LocalHandoffs is how often a hold may pass on inside this process, without a message to the engine, before it
	// goes back to the engine's queue. Each pass has a larger token of its own. With more passes many goroutines that
	// want the same lock are served faster, and other processes wait longer. 0 means the default, negative means never.
	// The default is 255; an engine may allow fewer (ZooKeeper and etcd 63).
	LocalHandoffs int

	// LocalHandoffTime is how long a hold may pass on inside this process, counted from the engine's grant. The
	// default is 10 ms.
	LocalHandoffTime time.Duration

	// Retain is the LockOptions.Retain of mutexes that set none. It has no effect where a lock cannot be retained: with
	// NoRenew, MinHold or LockDelay, and for locks other than mutexes. With an engine that cannot retain any lock, Open
	// and New return ErrUnsupported, and with a negative LocalHandoffs an error. The default is none.
	Retain time.Duration

	// LabelFrom returns the label of one call for a lock, such as one with the trace of the call. It gets the context
	// of the call and LockOptions.Label. Operators and other clients see the result while the lock is held or waited
	// for.
	//
	// It is called once for each Lock, TryLock, Acquire and the like, and by a Multi once for each lock. It runs in the
	// caller's goroutine, before anything is sent. It must not block, and a panic goes on to the caller. An upgrade and
	// a Cond.Wait keep the label of their hold. An election shows the leader's value instead.
	//
	// A result of more than 255 bytes, or one that is not valid UTF-8, does not count: the lock has its Label. The
	// Logger is told, at Warn the first time and at Debug from then on.
	//
	// When a hold passes on inside this process, an engine with leases learns the new label after 100 ms, by one
	// renewal more. Other engines show the label of an earlier holder until the process gives the lock back. The
	// default is none.
	LabelFrom func(ctx context.Context, label string) string

	// CloseTimeout bounds Close, and the releases that Do makes after its function has returned. The default is 5 s.
	CloseTimeout time.Duration

	// Logger gets acquisitions at Debug, the first of several renewals or attempts that fail in a row and what was left
	// behind at Warn, and losses and panics of the Observer at Error. With Open the engine's own records go there too,
	// such as findings about the server at Warn. It must not block. A panic of its handler costs that record and
	// nothing else. The default is slog.Default() at the time when the client is made, which shows no Debug unless the
	// program has set it so. slog.DiscardHandler discards.
	Logger *slog.Logger

	// Store names the store that keeps the locks, for [MultiOf] over several clients. Locks of the same name are taken
	// in the order of their stores, so each store must have the same name in all processes. The default is made of the
	// URL that Open was given. It has the scheme, hosts and path, and the namespace on the server (database, prefix or
	// table). It is empty for New.
	Store string

	// Observer is told of every wait, acquisition, renewal, loss and release; see there. [JoinObservers] makes one of
	// several. The default is none, and costs nothing.
	Observer *Observer

	_ struct{}
}

// withDefaults returns a checked copy of o, which may be nil.
func (o *Options) withDefaults() (Options, error) {
	var c Options
	if o != nil {
		c = *o
	}
	if c.Lease == 0 {
		c.Lease = defaultLease
	}
	if c.Renewal == 0 {
		c.Renewal = c.Lease / 3
	}
	if c.LocalHandoffs == 0 {
		c.LocalHandoffs = defaultLocalHandoffs
	}
	if c.LocalHandoffTime == 0 {
		c.LocalHandoffTime = defaultLocalHandoffTime
	}
	if c.CloseTimeout == 0 {
		c.CloseTimeout = defaultCloseTimeout
	}
	if c.ClientName == "" {
		c.ClientName = defaultClientName()
	}
	if c.Logger == nil {
		c.Logger = slog.Default() // a loss must not go unnoticed only because nobody has asked for a log
	}
	c.Logger = shell.Guard(c.Logger)
	if c.Observer == nil {
		c.Observer = &Observer{}
	}
	return c, c.validate()
}

// config returns what a client needs of o, whose defaults are filled in.
func (o *Options) config() shell.Config {
	return shell.Config{
		Lease: o.Lease, Renewal: o.Renewal, Retain: o.Retain, CloseTimeout: o.CloseTimeout,
		LocalHandoffs: o.LocalHandoffs, LocalHandoffTime: o.LocalHandoffTime, ClientName: o.ClientName, Store: o.Store,
		LabelFrom: o.LabelFrom, Logger: o.Logger, Observer: o.Observer.functions(),
	}
}

// validate says which option contradicts what. It runs after the defaults are filled in, so it also finds a Lease that
// is too short for the Renewal.
func (o *Options) validate() error {
	if err := validateLease(o.Lease, o.Renewal); err != nil {
		return fmt.Errorf("interlock: Options: %w", err)
	}
	if o.LocalHandoffTime < 0 {
		return fmt.Errorf("interlock: Options: LocalHandoffTime %v is negative; to switch local passes off set "+
			"LocalHandoffs to -1", o.LocalHandoffTime)
	}
	if o.Retain < 0 || o.Retain > longest {
		return fmt.Errorf("interlock: Options: Retain %v must be between 0 and %v", o.Retain, longest)
	}
	if o.Retain > 0 && o.LocalHandoffs < 0 {
		return fmt.Errorf("interlock: Options: %w", errNoTakeOver)
	}
	if o.CloseTimeout < 0 {
		return fmt.Errorf("interlock: Options: CloseTimeout %v is negative", o.CloseTimeout)
	}
	if o.LocalHandoffs > mostPasses {
		return fmt.Errorf("interlock: Options: LocalHandoffs %d is too large: at most %d", o.LocalHandoffs, mostPasses)
	}
	return validateText("ClientName", o.ClientName)
}

// errNoTakeOver refuses a retention that could never be used: a take-over is a hand-off of the client to itself.
var errNoTakeOver = errors.New("a negative LocalHandoffs excludes Retain, which hands the lock on inside the process")

// validateLease checks a lease and the interval of its renewals. The interval must be less than half of the lease, so
// that one renewal can go unanswered without a loss.
func validateLease(lease, renewal time.Duration) error {
	if lease < minLease {
		return fmt.Errorf("the Lease of %v is too short: it must be at least %v", lease, minLease)
	}
	if lease > longest {
		return fmt.Errorf("the Lease of %v is too long: it must be at most %v", lease, longest)
	}
	if renewal < minRenewal || renewal >= lease/2 {
		return fmt.Errorf("the Renewal of %v must be at least %v and less than half of the Lease of %v", renewal,
			minRenewal, lease)
	}
	return nil
}

// maxTextBytes bounds what is stored for operators to read. Every engine keeps the first 255 bytes at least.
const maxTextBytes = 256

// validateText checks such a text; field names it in the error.
func validateText(field, s string) error {
	if len(s) > maxTextBytes || !utf8.ValidString(s) {
		return fmt.Errorf("interlock: %s must be at most %d bytes of valid UTF-8", field, maxTextBytes)
	}
	return nil
}

// defaultClientName returns "host:pid", cut to what fits.
func defaultClientName() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	host = strings.ToValidUTF8(host, "?")
	return fmt.Sprintf("%s:%d", host[:min(len(host), maxTextBytes-24)], os.Getpid())
}
