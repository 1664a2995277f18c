package interlock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/core"
	"github.com/interlock-go/interlock/internal/shell"
)

// What a client and a lock are configured with, the defaults and the checks.

const (
	defaultLease        = 30 * time.Second
	defaultCloseTimeout = 5 * time.Second

	// defaultLocalHandoffs and defaultLocalHandoffTime bound how long one process may keep a lock that others wait for.
	// A hand-over to another process takes about as long as a hundred empty passes, so 63 of them left most of the time
	// to hand-overs. Where work is done under the lock, defaultLocalHandoffTime is over first.
	defaultLocalHandoffs    = 255
	defaultLocalHandoffTime = 10 * time.Millisecond

	// minLease leaves room for the drift allowance; see TrustEnd. minRenewal keeps a typing mistake from flooding the
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

// The options of one lock, resolved once when the lock is made: after that every request reads params and never
// Options.

// LockOptions configures one lock. nil, or a zero field, means the client's option.
type LockOptions struct {
	// Lease and Renewal are as in Options. A Lease without a Renewal is renewed every third of it. On engines with
	// sessions, and on files, a Lease that differs from the client's is refused with ErrUnsupported, unless NoRenew or
	// MaxHold is set too.
	Lease, Renewal time.Duration

	// NoRenew makes the lease fixed: the hold ends, as a loss, after Lease, unless [Lease.Extend] moves its end.
	NoRenew bool

	// MaxHold ends the hold, as a loss, this long after the grant, even if its renewals succeed. The default is none.
	MaxHold time.Duration

	// Wait bounds the waiting of Lock, RLock, UpgradeableRLock, Acquire, Campaign, Upgrade and every Do, beside ctx.
	// When it ends the error is a *HeldError whose Waited says how long the call has waited. It is an *UnavailableError
	// if the engine did not answer meanwhile. Neither matches a context's error. The work under the lock is not
	// bounded. A Multi waits for the shortest Wait of its mutexes, as a whole. A try does not wait. Cond.Wait is not
	// bounded, because the engine does not tell when the signal has come. The default, 0, means that ctx alone bounds
	// the waiting.
	Wait time.Duration

	// Label is shown to operators beside the owner. At most 256 bytes.
	Label string

	// LabelFrom replaces [Options].LabelFrom for this lock. It returns the label of one call, from its context and
	// Label. A function that returns label switches the client's off.
	LabelFrom func(ctx context.Context, label string) string

	// Class is the low-cardinality name under which metrics count this lock, such as "order:{id}". The default is
	// "other".
	Class string

	// MinHold is the minimum time from the grant until another owner can get the lock, however early it is unlocked. It
	// is for jobs that many hosts start at about the same time and that only one is to run. Unlock returns at once and
	// ends the hold. Engines with leases then keep the lock closed for the rest, also when this process ends. Elsewhere
	// (sessions, files) this process keeps it in the background, after [Client.Close] too, and the lock becomes free
	// when the process ends. A holder that crashes keeps others out for its lease, and not for MinHold. Break ends the
	// rest. Too long, and the next run of the job finds the lock held. The default is none.
	MinHold time.Duration

	// LockDelay is how long the lock stays unavailable after a hold is lost (not after it was released). It is for
	// resources that cannot check a fence: what the loser has sent can arrive first. It begins when the engine ends the
	// lease, so a crash of the holder keeps others out for Lease and LockDelay together. It also begins when the holder
	// tells the engine of the loss, or with Break; a second Break with the same token ends it. Holds that re-enter have
	// at least the LockDelay of the first. Too long, and each crash blocks others for long. Engines that cannot
	// remember it refuse it with ErrUnsupported: all but Redis (not Redlock) and memory. The default is none.
	LockDelay time.Duration

	// Retain is how long the client keeps the lock after an Unlock for which nobody waits. A Lock of this process
	// within that time, and its Unlock, send nothing. The lock has no holder meanwhile. When another process asks for
	// it, the client gives it back at once; that process waits for one message more than with a hand-off.
	//
	// This has a price. If this process dies while it retains the lock, others wait for 2 s, or for the whole Lease
	// during the first 10 ms of retention. On ZooKeeper and etcd they always wait until the session ends, which is the
	// whole Lease. So use Retain for locks that one process takes again and again. A lock that others recall repeatedly
	// is not retained for its next unlocks, up to 64. A client retains at most 1,024 locks, the latest ones. If Mutexes
	// of one lock differ in Retain, that of the last hold counts.
	//
	// Only a mutex can be retained, and not with NoRenew, MinHold, LockDelay, a named owner or a negative
	// Options.LocalHandoffs. An engine that cannot
	// tell a holder that another waits returns ErrUnsupported: all but Redis (not Redlock), ZooKeeper, etcd and memory.
	// The default is none.
	Retain time.Duration

	_ struct{}
}

// params resolves o against the client's options and the engine's traits. All locks without options share one, so that
// they cost no memory.
func params(c *shell.Client, o *LockOptions) *core.Terms {
	if o == nil {
		return &c.Defaults
	}
	p := c.Defaults
	p.Err = resolveTerms(&p, c, o)
	return &p
}

// paramsDirect returns the options of a read/write lock or a semaphore, or what is wrong with its name, its options or
// the engine.
func paramsDirect(c *shell.Client, key driver.Key, opts *LockOptions) core.Terms {
	if err := c.CheckMade(); err != nil {
		return core.Terms{Kind: key.Kind, Err: err}
	}
	if err := shell.ValidateName("name of the lock", key.Name); err != nil {
		return core.Terms{Kind: key.Kind, Err: err}
	}
	if reason, lacks := c.Traits.LackingKind(key.Kind); lacks {
		return core.Terms{Kind: key.Kind, Err: shell.Wrap("lock", key, core.Unsupported(c.Traits, reason))}
	}
	p := *params(c, opts)
	p.Kind = key.Kind
	p.Err = cmp.Or(p.Err, noRetain(&p, opts, "a lock that can be shared"))
	return p
}

// resolveTerms takes what o says into p, or says what is wrong with it.
func resolveTerms(p *core.Terms, c *shell.Client, o *LockOptions) error {
	// First, so that Observers see the class whatever is wrong with the other options.
	p.Class = cmp.Or(o.Class, p.Class)
	if err := resolveCooldowns(p, c, o); err != nil {
		return err
	}
	if o.Wait < 0 {
		return fmt.Errorf("interlock: LockOptions: Wait %v must not be negative; use a Try to wait for nothing", o.Wait)
	}
	if o.MaxHold < 0 || o.MaxHold > longest {
		return fmt.Errorf("interlock: LockOptions: MaxHold %v must be between 0 and %v", o.MaxHold, longest)
	}
	if o.Lease != 0 {
		p.Lease, p.Renewal = o.Lease, o.Lease/3
	}
	if o.Renewal != 0 {
		p.Renewal = o.Renewal
	}
	if err := validateLease(p.Lease, p.Renewal); err != nil {
		return fmt.Errorf("interlock: LockOptions: %w", err)
	}
	// There a renewed hold lasts as long as the session or process, so a lease of its own would mean nothing.
	if !c.HasLeases() && p.Lease != c.Config.Lease && !o.NoRenew && o.MaxHold == 0 {
		return fmt.Errorf("interlock: LockOptions: a Lease of its own without NoRenew or MaxHold: %w (%s: a hold "+
			"lasts as long as the %s)",
			ErrUnsupported, c.Traits.Engine, c.Traits.Lifetime)
	}
	if err := validateText("LockOptions.Label", o.Label); err != nil {
		return err
	}
	if err := resolveRetain(p, c, o); err != nil {
		return err
	}
	p.Wait = o.Wait
	p.NoRenew, p.MaxHold, p.Label = o.NoRenew, o.MaxHold, o.Label
	if o.LabelFrom != nil {
		p.LabelFrom = o.LabelFrom
	}
	return nil
}

// resolveCooldowns takes MinHold and LockDelay into p, or says what is wrong with them.
func resolveCooldowns(p *core.Terms, c *shell.Client, o *LockOptions) error {
	if o.MinHold < 0 || o.MinHold > longest {
		return fmt.Errorf("interlock: LockOptions: MinHold %v must be between 0 and %v", o.MinHold, longest)
	}
	if o.LockDelay < 0 || o.LockDelay > longest {
		return fmt.Errorf("interlock: LockOptions: LockDelay %v must be between 0 and %v", o.LockDelay, longest)
	}
	if o.LockDelay > 0 {
		reason, lacks := c.Traits.Lacking(driver.LockDelays)
		if !c.HasLeases() {
			lacks, reason = true, cmp.Or(reason, "after a crash nothing is left that could keep others out")
		}
		if lacks {
			return fmt.Errorf("interlock: LockOptions: LockDelay: %w", core.Unsupported(c.Traits, reason))
		}
	}
	p.MinHold, p.LockDelay = o.MinHold, o.LockDelay
	return nil
}

// resolveRetain takes Retain into p, or says what is wrong with it. Options.Retain is a default for all mutexes, so it
// gives way in silence where it cannot be; LockOptions.Retain is an error there.
func resolveRetain(p *core.Terms, c *shell.Client, o *LockOptions) error {
	if o.Retain < 0 || o.Retain > longest {
		return fmt.Errorf("interlock: LockOptions: Retain %v must be between 0 and %v", o.Retain, longest)
	}
	cannot := o.NoRenew || o.MinHold > 0 || o.LockDelay > 0
	switch {
	case cannot && o.Retain > 0:
		return errors.New("interlock: LockOptions: Retain excludes NoRenew, MinHold and LockDelay")
	case cannot:
		p.Retain = 0 // set by the client's option
	case o.Retain > 0 && c.Config.LocalHandoffs < 0:
		return fmt.Errorf("interlock: LockOptions: %w", errNoTakeOver)
	case o.Retain > 0:
		if err := c.MayRetain(); err != nil {
			return fmt.Errorf("interlock: LockOptions: Retain: %w", err)
		}
		p.Retain = o.Retain
	}
	return nil
}

// noRetain has p retain nothing, for a lock that is no mutex, or returns an error if LockOptions asked for it.
func noRetain(p *core.Terms, o *LockOptions, what string) error {
	p.Retain = 0
	if o != nil && o.Retain > 0 {
		return fmt.Errorf("interlock: LockOptions: Retain of %s: %w; only a mutex is retained", what, ErrUnsupported)
	}
	return nil
}
