// Listing, and the survey of all nodes that listing, Break and foreign releases begin with.

package redlock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/redislock"
)

// Locks lists what a majority of the nodes tells. All nodes are searched at once, each as redislock does it. What they
// have found is kept in memory until the last has answered, or until a majority has and NodeTimeout is over. The list
// is no snapshot.
func (d *Driver) Locks(ctx context.Context, prefix string) iter.Seq2[driver.LockInfo, error] {
	return func(yield func(driver.LockInfo, error) bool) {
		views := make([]map[driver.Key]driver.LockInfo, len(d.nodes))
		err := d.survey(ctx, "list", prefix, func(ctx context.Context, i int, n *redislock.Driver) (func(), error) {
			found := make(map[driver.Key]driver.LockInfo)
			for info, err := range n.Locks(ctx, prefix) {
				if err != nil {
					return nil, err
				}
				found[driver.Key{Kind: info.Kind, Name: info.Name}] = info
			}
			return func() { views[i] = found }, nil
		})
		if err != nil {
			yield(driver.LockInfo{}, err)
			return
		}
		// A lock is told once, with what all views say of it, at the first view that knows it.
		seen := make(map[driver.Key]bool)
		for _, view := range views {
			for key := range view {
				if seen[key] {
					continue
				}
				seen[key] = true
				info := d.merge(key, views)
				if (len(info.Holders)+len(info.Waiters) > 0 || info.Unreadable != "") && !yield(info, nil) {
					return
				}
			}
		}
	}
}

// survey asks all nodes at once. It returns when all have answered, or when a majority has and NodeTimeout is over. ask
// returns a function that takes what the node has found. Only survey's own goroutine calls it, and never after survey
// has returned.
func (d *Driver) survey(ctx context.Context, op, name string,
	ask func(ctx context.Context, i int, n *redislock.Driver) (take func(), err error),
) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type answer struct {
		take func()
		err  error
	}
	answers := make(chan answer, len(d.nodes))
	for i, n := range d.nodes {
		started := d.spawn(func() { // ends with ctx
			var a answer
			select {
			// A new client would otherwise miss a node that is only late, and may know the newest hold.
			case <-n.tried:
			case <-ctx.Done():
			}
			a.err = n.call(func(nd *redislock.Driver) (err error) {
				a.take, err = ask(ctx, i, nd)
				return err
			})
			answers <- a
		})
		if !started {
			return driver.ErrClosed
		}
	}
	timer := time.NewTimer(d.opts.NodeTimeout)
	defer timer.Stop()
	good, over := 0, false
	var errs []error
	for left := len(d.nodes); left > 0 && !(over && good >= d.quorum); left-- {
		select {
		case a := <-answers:
			if a.err != nil {
				errs = append(errs, a.err)
				continue
			}
			good++
			a.take()
		case <-timer.C:
			over = true
			left++ // no answer was taken
		case <-ctx.Done():
			return &driver.UnavailableError{Op: op, Name: name, Err: ctx.Err()}
		case <-d.base.Done():
			return driver.ErrClosed
		}
	}
	if good < d.quorum {
		return &driver.UnavailableError{
			Op: op, Name: name,
			Err: fmt.Errorf("%d of %d nodes have answered, and %d are needed: %w",
				good, len(d.nodes), d.quorum, errors.Join(errs...)),
		}
	}
	return nil
}

// roundOf returns the ID under which the nodes know a hold: that of its request, unless the request took several
// rounds. Only the driver that acquired the hold knows that by itself; another one must look, which costs a round trip.
func (d *Driver) roundOf(ctx context.Context, key driver.Key, id string) string {
	if d.holder(requestKey{key, id}) != nil {
		return id
	}
	var mu sync.Mutex
	ctx, cancel := context.WithTimeout(ctx, d.opts.NodeTimeout)
	defer cancel()
	found := id
	_ = d.survey(ctx, "find", key.Name, func(ctx context.Context, _ int, n *redislock.Driver) (func(), error) {
		info, _, _, err := n.LookTokens(ctx, key)
		for _, h := range info.Holders {
			if known, _ := splitRoundOwner(h.Owner); strings.HasPrefix(known, id+"/") {
				mu.Lock()
				found = known
				mu.Unlock()
			}
		}
		return func() {}, err
		// Without a majority it is asked for under its own ID, and not found either.
	})
	mu.Lock()
	defer mu.Unlock()
	return found
}

// hold is what the nodes know of one holder. blocks has an element for each node, zero where the node does not know the
// holder.
type hold struct {
	id     string        // the ID of its round
	shown  driver.Holder // of the node that has renewed it last
	blocks []block
	votes  int // how many nodes have voted for it
}

// merge makes one lock of what the nodes tell of it. A nil view is that of a node which has not answered. A holder is
// one that has a majority, or may have it with the votes of unheard nodes (but see below for elections). Votes for
// another request are shown as its wait.
func (d *Driver) merge(key driver.Key, views []map[driver.Key]driver.LockInfo) driver.LockInfo {
	info := driver.LockInfo{Kind: key.Kind, Name: key.Name}
	holds, unheard := d.holdsOf(key, views)
	waiting := make(map[string]*wait)
	// Who leads an election is told to those who act on it. So there the votes must be known: with those that a node
	// may have given which did not answer, a candidate that never led would look like the leader.
	perhaps := unheard
	if key.Kind == driver.KindElection {
		perhaps = 0
	}
	for _, h := range holds {
		if h.votes+perhaps >= d.quorum {
			h.shown.Token = common(h.blocks, d.quorum).first
			info.Holders = append(info.Holders, h.shown)
			waiting[h.id] = &wait{holds: true} // it may also be in the queue of a node that has no vote for it yet
			continue
		}
		waiting[h.id] = &wait{seen: h.votes, waiter: driver.Waiter{
			Owner: h.shown.Owner, Client: h.shown.Client, Label: h.shown.Label, Weight: h.shown.Weight,
			Shared: h.shown.Shared,
			Since:  h.shown.Since,
		}}
	}
	for _, view := range views {
		known := view[key]
		info.Limit = max(info.Limit, known.Limit)
		info.Unreadable = cmp.Or(info.Unreadable, known.Unreadable)
		for _, w := range known.Waiters {
			id, owner := splitRoundOwner(w.Owner)
			if waiting[id] == nil {
				w.Owner = owner
				waiting[id] = &wait{waiter: w}
			}
			waiting[id].seen++
			waiting[id].place += w.Position
		}
	}
	// A majority knows each waiter. What fewer know is left over from a wait whose end they were not told.
	for id, w := range waiting {
		if w.seen+unheard < d.quorum {
			delete(waiting, id)
		}
	}
	info.Waiters = inOrder(waiting)
	return info
}

// wait is what the nodes know of one waiter.
type wait struct {
	waiter driver.Waiter
	seen   int  // how many nodes know it
	place  int  // the sum of its places in their queues; where it has a vote already, it has none
	holds  bool // it holds the lock
}

// inOrder returns the waiters by the mean of their places. Ties go by the instant of asking, and then by the owner, so
// that two looks agree.
func inOrder(waiting map[string]*wait) []driver.Waiter {
	var waits []*wait
	for _, w := range waiting {
		if !w.holds {
			waits = append(waits, w)
		}
	}
	slices.SortFunc(waits, func(a, b *wait) int {
		// The products compare the means place/seen without dividing.
		return cmp.Or(cmp.Compare(a.place*b.seen, b.place*a.seen), a.waiter.Since.Compare(b.waiter.Since),
			cmp.Compare(a.waiter.Owner, b.waiter.Owner))
	})
	var list []driver.Waiter
	for i, w := range waits {
		w.waiter.Position = i + 1
		list = append(list, w.waiter)
	}
	return list
}

// holdsOf collects the holds of a lock, in no promised order, and counts the nodes that have not answered.
func (d *Driver) holdsOf(key driver.Key, views []map[driver.Key]driver.LockInfo) (holds []*hold, unheard int) {
	for i, view := range views {
		if view == nil {
			unheard++
			continue
		}
		for _, h := range view[key].Holders {
			id, owner := splitRoundOwner(h.Owner)
			at := slices.IndexFunc(holds, func(o *hold) bool { return o.id == id })
			if at < 0 {
				at = len(holds)
				holds = append(holds, &hold{id: id, blocks: make([]block, len(views))})
			}
			o := holds[at]
			h.Owner = owner
			// One token is enough for a list; Break looks for the whole block.
			o.blocks[i] = blockOf(h.Token, 1)
			if o.votes++; o.votes == 1 || h.Until.After(o.shown.Until) {
				o.shown = h
			}
		}
	}
	return holds, unheard
}
