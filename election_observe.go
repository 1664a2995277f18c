package interlock

import (
	"context"
	"iter"
	"time"

	"github.com/interlock-go/interlock/internal/core"
	"github.com/interlock-go/interlock/internal/shell"
)

// Observing an election: hints (client_watch.go) say when to look, election.go looks.

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
