package interlock

import (
	"context"
	"errors"
	"fmt"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/core"
	"github.com/interlock-go/interlock/internal/shell"
)

// Latches: counts that belong to nobody. Each change has an ID and is repeated until its outcome is known
// (internal/shell/call.go); a wait follows hints (internal/shell/watch.go). docs/rationale.md, Elections and latches,
// has the decision.

// maxCount bounds the count of a latch to what every engine counts exactly. These are the integers of a float64, with
// which a script of Redis computes.
const maxCount = 1 << 53

// Latch is a count that goes down to zero, and for which any number of goroutines and processes can wait: a distributed
// CountDownLatch. It belongs to nobody. It stays when the client that has set it is gone, until its count is zero. One
// that is given up has to be counted down by hand. A latch that was never set is at zero.
//
// All Latches of one name are the same. It is safe for concurrent use. The zero value cannot be used.
type Latch struct {
	_   core.NoCopy
	c   *shell.Client
	key driver.Key
	err error // a bad name, or an engine without latches; returned by the first call
}

// Latch returns the latch of that name. It asks no engine; an invalid name, or an engine that keeps no latches, is
// reported by its first call.
func (c *Client) Latch(name string) *Latch {
	s := c.in()
	l := &Latch{c: s, key: driver.Key{Kind: driver.KindLatch, Name: name}}
	if l.err = s.CheckMade(); l.err != nil {
		return l
	}
	if l.err = shell.ValidateName("name of the latch", name); l.err != nil {
		return l
	}
	if reason, lacks := s.Traits.LackingKind(driver.KindLatch); lacks {
		l.err = shell.Wrap("latch", l.key, core.Unsupported(s.Traits, reason))
	} else if _, can := s.Driver.(driver.Latcher); !can {
		l.err = shell.Wrap("latch", l.key, core.Unsupported(s.Traits, "its driver is no driver.Latcher"))
	}
	return l
}

// Set sets the count to n, from 1 to 2^53, and returns true. If the latch counts already, it changes nothing and
// returns false. When the count has come to zero it may be set again. Waits that were under way then end, or go on if
// they did not see the zero in between. So give each round a name of its own if that matters.
//
// Set and CountDown are repeated until the engine has answered, and count once however often they are repeated. If
// there is no answer by the end of ctx, or within Options.Lease, the error is an *UnavailableError and the outcome is
// unknown. They cost one round trip.
func (l *Latch) Set(ctx context.Context, n int64) (bool, error) {
	if err := shell.CheckCall(l.checkMade(), ctx); err != nil {
		return false, err
	}
	if n < 1 || n > maxCount {
		return false, fmt.Errorf("interlock: latch %q: the count %d must be from 1 to 2^53", l.key.Name, n)
	}
	set := false
	err := l.change(ctx, "set latch", func(
		ctx context.Context, latcher driver.Latcher, call *driver.LatchCall,
	) (err error) {
		call.Count = n
		set, err = latcher.SetLatch(ctx, call)
		return err
	})
	return set && err == nil, err
}

// CountDown takes one from the count and returns what is left. The call that leaves zero wakes all waiters. At
// zero it does nothing and returns 0. See [Latch.Set] for repetitions and errors.
func (l *Latch) CountDown(ctx context.Context) (left int64, err error) {
	err = l.change(ctx, "count down", func(ctx context.Context, latcher driver.Latcher,
		call *driver.LatchCall,
	) (err error) {
		left, err = latcher.CountDown(ctx, call)
		return err
	})
	if err != nil {
		return 0, err
	}
	return left, nil
}

// Count returns the count of a moment ago. It costs one round trip.
func (l *Latch) Count(ctx context.Context) (int64, error) {
	if err := shell.CheckCall(l.checkMade(), ctx); err != nil {
		return 0, err
	}
	if err := l.c.CheckOpen(); err != nil {
		return 0, err
	}
	if err := ctx.Err(); err != nil {
		return 0, shell.Wrap("count of", l.key, err)
	}
	var left int64
	err := l.c.Asking(ctx, func(ctx context.Context) (err error) {
		left, err = l.c.Driver.(driver.Latcher).LatchCount(ctx, l.key)
		return err
	})
	if err != nil {
		return 0, shell.Wrap("count of", l.key, err)
	}
	return left, nil
}

// Wait returns nil when the count is zero, at once if it is already. Engines that can tell of zero wake the wait, which
// also looks once a minute; on others it looks every second. The wait goes on while the engine cannot be reached. It
// ends with ctx, whose error it then matches, with the client (ErrClosed), or when the engine refuses (ErrRefused).
//
// It costs two round trips, and one for each of these looks.
func (l *Latch) Wait(ctx context.Context) error {
	// Before the watch begins: most waits that come late need none.
	left, err := l.Count(ctx)
	if err == nil && left == 0 || err != nil && shell.Final(err) {
		return err
	}
	c := l.c
	bounded := core.CallContext{User: ctx, Base: c.WaitsCtx}
	defer bounded.End()
	changes := c.WatchFor(&bounded, l.key)
	defer changes.Stop()
	for next := shell.Rarely(err); changes.Next(&bounded, next); next = shell.Rarely(err) {
		left, err = l.Count(&bounded)
		if err == nil && left == 0 {
			return nil
		}
		if err != nil && shell.Final(err) && bounded.Err() == nil {
			return err
		}
	}
	switch {
	case ctx.Err() == nil:
		return shell.Wrap("wait for latch", l.key, ErrClosed)
	case err != nil && !errors.Is(err, ctx.Err()):
		return shell.Unavailable("wait for latch", l.key, errors.Join(ctx.Err(), err))
	}
	return shell.Wrap("wait for latch", l.key, ctx.Err())
}

// change makes a change of the latch and repeats it until the engine has answered.
func (l *Latch) change(
	ctx context.Context, op string, ask func(context.Context, driver.Latcher, *driver.LatchCall) error,
) error {
	if err := shell.CheckCall(l.checkMade(), ctx); err != nil {
		return err
	}
	// The engine remembers the ID for longer than the call is repeated.
	call := &driver.LatchCall{Key: l.key, ID: l.c.NewID(), Horizon: 2 * l.c.Config.Lease}
	return l.c.Persist(ctx, op, l.key, func(ctx context.Context) error {
		return ask(ctx, l.c.Driver.(driver.Latcher), call)
	})
}

var errNoLatch = errors.New("interlock: Latch was not made by Client.Latch")

func (l *Latch) checkMade() error {
	if l == nil || l.c == nil && l.err == nil {
		return errNoLatch
	}
	return l.err
}
