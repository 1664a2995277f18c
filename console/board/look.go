package board

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
)

// Defaults of [Options].
const (
	DefaultInterval = time.Second      // of Interval: the pause between two looks
	DefaultTimeout  = 10 * time.Second // of Timeout: how long a look may take
	DefaultMaxLocks = 10_000           // of MaxLocks: how many locks a board has
)

// maxEdges bounds what a lock with many holders and many waiters can cost: it has an edge for each pair of them.
const maxEdges = 20_000

// Options of a look. A nil *Options is the defaults.
type Options struct {
	URL      string        // shown on the board: the engine's URL without its password
	Prefix   string        // only locks whose names start with it
	Interval time.Duration // of a Poller, the pause between two looks; 0 is DefaultInterval
	Timeout  time.Duration // of one look; 0 is DefaultTimeout
	NoBreak  string        // why this program ends no holds although the engine could; empty if it does
	MaxLocks int           // how many locks a board has at most, the first by name; 0 is DefaultMaxLocks

	_ struct{}
}

// withDefaults returns a copy in which nothing is missing.
func (o *Options) withDefaults() Options {
	var filled Options
	if o != nil {
		filled = *o
	}
	if filled.Interval <= 0 {
		filled.Interval = DefaultInterval
	}
	if filled.Timeout <= 0 {
		filled.Timeout = DefaultTimeout
	}
	if filled.MaxLocks <= 0 {
		filled.MaxLocks = DefaultMaxLocks
	}
	return filled
}

// Take looks once. If the engine does not answer within the timeout, or fails before the end of its list, the board has
// what came before that, is Truncated, and says why in Error. An engine that cannot list is no error: Knows.List says
// why, and there are no locks.
//
// It costs one [interlock.Client.List]. Beyond MaxLocks it reads on to count, and keeps the first by name and kind.
func Take(ctx context.Context, c *interlock.Client, opts *Options) *Board {
	o := opts.withDefaults()
	return take(ctx, c, &o)
}

func take(ctx context.Context, c *interlock.Client, o *Options) *Board {
	traits := c.Traits()
	b := &Board{
		SchemaVersion: SchemaVersion, IntervalMs: o.Interval.Milliseconds(), Engine: traits.Engine, URL: o.URL,
		Prefix: o.Prefix, Kinds: traits.Kinds, Lifetime: traits.Lifetime.String(), Knows: knowledge(traits),
		Counts: Counts{ByKind: map[driver.Kind]int{}},
		Locks:  []Lock{}, Edges: []Edge{}, Cycles: [][]string{}, Events: []Event{},
	}
	b.Knows.mayNot(o.NoBreak)
	began := time.Now()
	var err error
	if b.Knows.List.OK {
		err = b.read(ctx, c, o)
	}
	now := time.Now()
	b.Tried, b.TookMs = instant(now), now.Sub(began).Milliseconds()
	if err != nil {
		b.Err, b.Error, b.Truncated = err, err.Error(), true
	}
	if err == nil || len(b.Locks) > 0 {
		b.Taken = b.Tried
	}
	b.Knows.seen(b.Locks)
	var graph Graph
	graph, b.EdgesTruncated = graphOf(b.Locks, maxEdges)
	b.Edges, b.Cycles = graph.Edges, graph.Cycles
	return b
}

// read fills Locks and Counts. With an error they have what came before it.
func (b *Board) read(ctx context.Context, c *interlock.Client, o *Options) error {
	ctx, cancel := context.WithTimeoutCause(ctx, o.Timeout, fmt.Errorf("no answer within %v", o.Timeout))
	defer cancel()
	var oldest time.Time
	for info, err := range c.List(ctx, o.Prefix) {
		if err != nil {
			b.cut(o.MaxLocks)
			return explained(ctx, err)
		}
		lock := LockOf(info, b.Knows.Waiters.OK)
		b.Counts.add(&lock, &oldest)
		b.Locks = append(b.Locks, lock)
		if len(b.Locks) >= 2*o.MaxLocks {
			b.cut(o.MaxLocks)
		}
	}
	b.cut(o.MaxLocks)
	if !oldest.IsZero() {
		b.Counts.OldestWaiterMs = max(0, time.Since(oldest).Milliseconds())
	}
	return nil
}

// explained adds to err that it was our time limit that ended the look.
func explained(ctx context.Context, err error) error {
	if why := context.Cause(ctx); ctx.Err() != nil && errors.Is(err, ctx.Err()) && !errors.Is(why, ctx.Err()) {
		return fmt.Errorf("%w: %w", err, why)
	}
	return err
}

// cut sorts the locks and keeps the first.
func (b *Board) cut(most int) {
	slices.SortFunc(b.Locks, func(x, y Lock) int { return compare(&x, &y) })
	if len(b.Locks) > most {
		clear(b.Locks[most:])
		b.Locks, b.Truncated = b.Locks[:most], true
	}
}

// compare orders locks by name and kind.
func compare(x, y *Lock) int { return cmp.Or(cmp.Compare(x.Name, y.Name), cmp.Compare(x.Kind, y.Kind)) }

// add counts one lock.
func (c *Counts) add(l *Lock, oldest *time.Time) {
	c.ByKind[l.Kind]++
	c.Waiting += len(l.Waiters)
	for i := range l.Waiters {
		since := l.Waiters[i].Since
		// Candidates of an election wait for days, as they should.
		if l.Kind != driver.KindElection && !since.IsZero() && (oldest.IsZero() || since.Before(*oldest)) {
			*oldest = since
		}
	}
	switch {
	case l.Unreadable != "":
		c.Unreadable++
	case slices.ContainsFunc(l.Holders, func(h Holder) bool { return h.held() }):
		c.Held++
	case slices.ContainsFunc(l.Holders, func(h Holder) bool { return h.Retained }):
		c.Retained++
	case len(l.Holders) > 0:
		c.Resting++
	}
}
