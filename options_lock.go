package interlock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/core"
	"github.com/interlock-go/interlock/internal/shell"
)

// The options of one lock, resolved once when the lock is made: after that every request reads params and never
// Options. options.go has the client's.

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
		return &c.Machine.Defaults
	}
	p := c.Machine.Defaults
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
	if reason, lacks := c.Machine.Traits.LackingKind(key.Kind); lacks {
		return core.Terms{Kind: key.Kind, Err: shell.Wrap("lock", key, core.Unsupported(c.Machine.Traits, reason))}
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
	if !c.Machine.HasLeases() && p.Lease != c.Config.Lease && !o.NoRenew && o.MaxHold == 0 {
		return fmt.Errorf("interlock: LockOptions: a Lease of its own without NoRenew or MaxHold: %w (%s: a hold "+
			"lasts as long as the %s)",
			ErrUnsupported, c.Machine.Traits.Engine, c.Machine.Traits.Lifetime)
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
		reason, lacks := c.Machine.Traits.Lacking(driver.LockDelays)
		if !c.Machine.HasLeases() {
			lacks, reason = true, cmp.Or(reason, "after a crash nothing is left that could keep others out")
		}
		if lacks {
			return fmt.Errorf("interlock: LockOptions: LockDelay: %w", core.Unsupported(c.Machine.Traits, reason))
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
		if err := c.Machine.MayRetain(); err != nil {
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
