package interlock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/core"
	"github.com/interlock-go/interlock/internal/shell"
)

// Elections: a lock whose holder has a public value. The value travels as the label of the request, which every engine
// stores, shows and refreshes, so every engine carries elections (docs/adr/0024). acquire.go does the rest;
// election_observe.go is for those who only look.

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
		if reason, lacks := s.Machine.Traits.LackingKind(driver.KindElection); lacks {
			p.Err = shell.Wrap("election", e.key, core.Unsupported(s.Machine.Traits, reason))
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
	return &core.Lock{Core: e.c.CoreOf(), Name: e.key.Name, Terms: &p}
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
