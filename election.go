package interlock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"time"
	"unicode/utf8"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/core"
	"github.com/interlock-go/interlock/internal/shell"
)

// Elections: a lock whose holder has a public value. The value travels as the label of the request, which every engine
// stores, shows and refreshes, so every engine carries elections (docs/rationale.md, Elections and latches).
// internal/shell/acquire.go does the rest.

// ErrNoLeader says that nobody leads at the moment.
var ErrNoLeader = errors.New("no leader")

// MaxElectionValue is how long the value of a leader may be, in bytes: what every engine keeps of a label.
const MaxElectionValue = 255

// Leader is who leads an election. The zero value is nobody.
type Leader struct {
	Value  string // what the leader campaigned with, for instance the address at which it is reached
	Token  uint64 // the term: it grows with each leader, and a resource can check it as a fence
	Client string // the name of the leader's client, as operators see it
}

// Election is a lock whose holder, the leader, has a value that everybody can read. It promises what a lock does, and
// no more. At most one leader may trust its lease. A leader that stands still for longer than that may go on for a
// moment beside the next one. The leader's context ends when it has lost the election, and its token is what resources
// check.
//
// All Elections of one client with the same name are the same. It is safe for concurrent use. The zero value cannot be
// used.
type Election struct {
	_   core.NoCopy
	c   *shell.Client
	key driver.Key
	p   *core.Terms
}

// Election returns the election of that name. It asks no engine. An invalid name, invalid options, and an engine
// without elections (ErrUnsupported, with the reason) are reported by its first call. The leader's value takes the
// place of LockOptions.Label and LabelFrom, so these are refused, and so is Retain.
func (c *Client) Election(name string, opts *LockOptions) *Election {
	s := c.in()
	e := &Election{c: s, key: driver.Key{Kind: driver.KindElection, Name: name}}
	if err := s.CheckMade(); err != nil {
		e.p = &core.Terms{Kind: driver.KindElection, Err: err}
		return e
	}
	p := *params(s, opts)
	p.Kind = driver.KindElection
	p.Err = cmp.Or(p.Err, noRetain(&p, opts, "an election"))
	switch err := shell.ValidateName("name of the election", name); {
	case err != nil:
		p.Err = err
	case p.Err != nil:
	case opts != nil && (opts.Label != "" || opts.LabelFrom != nil):
		p.Err = fmt.Errorf("interlock: election %q: LockOptions.Label or LabelFrom, in whose place is the leader's "+
			"value: %w", name, ErrUnsupported)
	default:
		if reason, lacks := s.Traits.LackingKind(driver.KindElection); lacks {
			p.Err = shell.Wrap("election", e.key, core.Unsupported(s.Traits, reason))
		}
	}
	p.LabelFrom = nil
	p.Single = true // each candidate has a value of its own, so none can stand in line for another
	e.p = &p
	return e
}

// Campaign waits until the caller leads, and returns the leadership as a lease. Its Context ends when the leadership is
// lost, Token is the term, and Unlock resigns. Candidates lead in the order in which they came, where the engine keeps
// one. value is public. It has at most 255 bytes of valid UTF-8, may be empty, and cannot be changed during a term.
//
// ctx bounds the waiting, and errors are those of [Mutex.Lock]; a *HeldError names the leader. When ctx has ended,
// Campaign returns as soon as the engine has forgotten the candidate, so that nobody sees it lead after that. If the
// engine does not say so within 40 ms, that goes on in the background. If the candidate came to lead meanwhile,
// Campaign returns the leadership although ctx has ended. If ctx carries an owner who leads already, Campaign adds a
// hold to its term, whose value stays. The same happens if that owner comes to lead by another Campaign during the
// wait.
//
// It costs one round trip, and one message when it has to wait.
func (e *Election) Campaign(ctx context.Context, value string) (*Lease, error) {
	return handOver(e.campaign(ctx, value, false))
}

// TryCampaign is [Election.Campaign] without waiting: if another leads or campaigns already, the error is a *HeldError.
func (e *Election) TryCampaign(ctx context.Context, value string) (*Lease, error) {
	return handOver(e.campaign(ctx, value, true))
}

// campaign is Campaign, or TryCampaign with try. A value that is too long is refused before the engine is asked. The
// error does not show it.
func (e *Election) campaign(ctx context.Context, value string, try bool) (*core.Hold, error) {
	if err := e.mayCampaign(ctx, value); err != nil {
		return nil, err
	}
	return shell.Acquire(ctx, e.candidate(value), try)
}

// mayCampaign says why a campaign with value cannot be asked for, as far as no Observer can be told, or returns nil.
func (e *Election) mayCampaign(ctx context.Context, value string) error {
	if err := e.mayBeAsked(ctx); err != nil {
		return err
	}
	if e.p.Err == nil && (len(value) > MaxElectionValue || !utf8.ValidString(value)) {
		return fmt.Errorf("interlock: election %q: the value must be at most %d bytes of valid UTF-8; publish a "+
			"longer one elsewhere, under the token",
			e.key.Name, MaxElectionValue)
	}
	return nil
}

// candidate returns the lock by which a candidate with that value asks.
func (e *Election) candidate(value string) *core.Lock {
	p := *e.p
	p.Label = value
	return core.NewLock(e.c.CoreOf(), e.key.Name, p)
}

// mayBeAsked returns the errors of which no Observer can be told.
func (e *Election) mayBeAsked(ctx context.Context) error {
	if err := e.checkMade(); err != nil && (e == nil || e.p == nil || e.c.CheckMade() != nil) {
		return err
	}
	return shell.CheckContext(ctx)
}

// Leader returns who leads, or an error matching ErrNoLeader. It is the engine's word of a moment ago: by now another
// may lead. It costs one look, see [Client.Look].
//
// A leader that has resigned within a MinHold, or has been lost and has a LockDelay, leads no more, although nobody
// else can lead yet. Where a hold lasts as long as a session or a process, only the client that keeps the election for
// such a MinHold knows that. To others its leader leads until the MinHold is over.
func (e *Election) Leader(ctx context.Context) (Leader, error) {
	l, _, err := e.look(ctx)
	if err == nil && l == (Leader{}) {
		err = shell.Wrap("leader of", e.key, ErrNoLeader)
	}
	return l, err
}

// look returns who leads, or the zero Leader. Until the instant until, nothing can change that an engine with hints
// would not tell; after an error it is in the past. It is computed from the engine's clock, which may differ from ours,
// so it is good for a pause and nothing else.
func (e *Election) look(ctx context.Context) (l Leader, until time.Time, err error) {
	if err := shell.CheckCall(e.checkMade(), ctx); err != nil {
		return Leader{}, time.Time{}, err
	}
	info, err := publicOf(e.c).Look(ctx, e.key.Kind, e.key.Name)
	if err != nil {
		return Leader{}, time.Time{}, err
	}
	for _, h := range info.Holders {
		// A holder without a token is just becoming leader, and has no term yet.
		if h.Token != 0 && !h.Cooldown && !e.c.KeepsForCooldown(e.key, h.Token) {
			l := Leader{Value: h.Label, Token: h.Token, Client: h.Client}
			if e.c.Has(e.key, h.Token) {
				// The leader is this client's. It may resign and keep the lock for its MinHold, which the engine cannot
				// tell.
				h.Until = time.Time{}
			}
			return l, h.Until, nil
		}
	}
	return Leader{}, shell.Rarely(nil), nil
}

// Lead keeps the caller in the election until its work is done.

// The pauses between two campaigns that the engine has not answered, or has refused. They double each time.
const leadFirst, leadMost = 100 * time.Millisecond, 5 * time.Second

// Lead campaigns with value, and calls fn while it leads. fn's context is cancelled when ctx is and the moment the
// leadership is lost, with the reason as its cause. After a loss Lead waits until fn has returned, whatever it returns,
// and campaigns again. If a resource checks the term, use [Election.Campaign], whose lease has the token.
//
// Lead returns fn's error when fn returns while it still leads, and then resigns. When ctx ends during a campaign it
// returns ctx's cause. An engine that does not answer, or refuses, is asked again, with pauses of up to 5 s: the log
// says so. Every other error of [Election.Campaign] ends Lead, such as an invalid value. LockOptions.Wait does not.
// When fn panics Lead resigns, and the panic goes on.
func (e *Election) Lead(ctx context.Context, value string, fn func(ctx context.Context) error) error {
	if err := e.mayCampaign(ctx, value); err != nil {
		return err
	}
	if fn == nil {
		return shell.Wrap("lead", e.key, shell.ErrNoFunction)
	}
	candidate := e.candidate(value)
	candidate.Terms.Wait = 0
	for wait := leadFirst; ; {
		term, err := shell.Acquire(ctx, candidate, false)
		switch {
		case err == nil:
			wait = leadFirst
			if over, err := leadTerm(ctx, term, fn); over {
				return err
			}
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case !errors.Is(err, ErrUnavailable) || errors.Is(err, ErrLost):
			return err
		default:
			e.c.Config.Logger.WarnContext(ctx, "interlock: campaign failed, and is repeated", "election", e.key.Name,
				"engine", e.c.Traits.Engine, "in", wait, "err", err)
			if !pauseOpen(ctx, e.c, wait) {
				if ctx.Err() != nil {
					return context.Cause(ctx)
				}
				return shell.Wrap("lead", e.key, ErrClosed)
			}
			wait = min(2*wait, leadMost)
		}
	}
}

// leadTerm runs fn for one term, and resigns. It reports whether Lead is over: fn has returned while l still led.
func leadTerm(ctx context.Context, l *core.Hold, fn func(ctx context.Context) error) (over bool, err error) {
	defer func() {
		released := shell.UnlockInTime(ctx, l)
		if over {
			err = shell.Joined(err, released)
		}
	}()
	err = fn(shell.HoldContext(ctx, l))
	return !errors.Is(shell.EndOf(l), ErrLost), err
}

// pauseOpen waits for d and returns true, or false if ctx or the client ended first.
func pauseOpen(ctx context.Context, c *shell.Client, d time.Duration) bool {
	bounded, stop := context.WithCancel(ctx)
	defer stop()
	defer context.AfterFunc(c.WaitsCtx, stop)()
	return shell.Pause(bounded, d)
}

// Observing an election: hints (internal/shell/watch.go) say when to look, election.go looks.

// Observe yields who leads, at once and then whenever that changes, and the zero Leader when nobody does; see
// [Election.Leader]. If leaders follow each other faster than the loop takes them, some may be left out, but never the
// last. What was yielded last is true, or the next is on its way.
//
// No leader is yielded after one with a larger token. Where a failover of the engine has forgotten the latest leader,
// it may show an earlier one again; nobody leads then, as far as Observe tells, until a token is larger. So begin to
// observe anew after a restore that lets tokens fall.
//
// Engines that tell of changes (memory, Redis) are watched. They cannot tell that a leader has died while nobody else
// campaigns. So Observe also looks when the leader's lease should be over by the engine's clock, and once a minute in
// any case. Such an end is seen at most fifteen seconds late. All other engines are looked at every second. That is how
// late a change may be seen. It costs one look at a time, see [Client.Look], for each Observe.
//
// The sequence ends with ctx, and after an error that stays: ErrClosed, ErrUnsupported, or a refusal (ErrRefused).
// While the engine cannot be reached it yields the *UnavailableError once and goes on: the leader is unknown until the
// next pair without an error.
func (e *Election) Observe(ctx context.Context) iter.Seq2[Leader, error] {
	return func(yield func(Leader, error) bool) {
		if err := e.mayBeAsked(ctx); err != nil {
			yield(Leader{}, err)
			return
		}
		bounded := core.CallContext{User: ctx, Base: e.c.WaitsCtx}
		defer bounded.End()
		o := observation{e: e, changes: e.c.WatchFor(&bounded, e.key)}
		defer o.changes.Stop()
		for more := true; more; {
			more = o.look(ctx, &bounded, yield) && o.changes.Next(&bounded, o.next)
		}
		if e.c.WaitsCtx.Err() != nil && ctx.Err() == nil && !o.closed {
			yield(Leader{}, shell.Wrap("observe", e.key, ErrClosed))
		}
	}
}

// observation is the state of one Observe. Only its loop uses it.
type observation struct {
	e       *Election
	changes *shell.Changes
	last    Leader
	newest  uint64    // the largest token that was yielded
	next    time.Time // before this there is nothing to see but what the engine tells
	known   bool      // last was yielded, and no error after it
	blind   bool      // the engine could not be reached at the last look
	closed  bool      // nothing more will be yielded
}

// look asks who leads and yields what is new. It reports whether to go on.
func (o *observation) look(ctx, bounded context.Context, yield func(Leader, error) bool) bool {
	l, next, err := o.e.look(bounded)
	o.next = next
	switch same := l.Value == o.last.Value && l.Client == o.last.Client; {
	case l.Token >= o.newest:
	case same && l.Token != 0: // the same term: of several servers too few have answered to tell its token
		l = o.last
	default: // the engine has forgotten a later leader, whom this one may not know of
		l = Leader{}
	}
	switch {
	case bounded.Err() != nil:
		return false
	// The outage has been told.
	case err != nil && !shell.Final(err) && o.blind:
		return true
	case err != nil:
		o.known, o.blind = false, true
		o.closed = !yield(Leader{}, err) || shell.Final(err)
		return !o.closed && ctx.Err() == nil
	case o.known && l == o.last:
		return true
	}
	o.last, o.known, o.blind = l, true, false
	o.newest = max(o.newest, l.Token)
	o.closed = !yield(l, nil)
	return !o.closed
}

var errNoElection = errors.New("interlock: Election was not made by Client.Election")

func (e *Election) checkMade() error {
	if e == nil || e.p == nil {
		return errNoElection
	}
	return e.p.Err
}
