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

// Locks lists what a majority of the nodes tells. Each is searched as redislock does that, all at once, and
// what they have found is kept in memory until the last has answered, or has taken longer than NodeTimeout and
// a majority has answered.
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

// survey asks all nodes at once, and returns when all have answered, or a majority has and NodeTimeout is over. What a
// node has found is taken in by the function that ask returns, which is not called late.
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
			case <-n.tried: // else a look of a new client would lack a node that is only late, and may know the newest
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

// roundOf returns under which ID the nodes know a hold: that of its request, unless the request took several rounds.
// Only the driver that has acquired it knows that by itself; for another one it costs a round trip.
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
			if known, _ := hidden(h.Owner); strings.HasPrefix(known, id+"/") {
				mu.Lock()
				found = known
				mu.Unlock()
			}
		}
		return func() {}, err
	}) // without a majority it is asked for under its own ID, and is not found either
	mu.Lock()
	defer mu.Unlock()
	return found
}

// hold is what the nodes know of one holder, by node; a zero block where they do not know it.
type hold struct {
	id     string
	shown  driver.Holder // of the node that has renewed it last
	blocks []block
	votes  int
}

// merge makes one lock of what the nodes tell of it. A nil view is of a node that has not answered. Who holds it is who
// has, or may have, a majority. Votes for somebody else are those of one who waits.
func (d *Driver) merge(key driver.Key, views []map[driver.Key]driver.LockInfo) driver.LockInfo {
	info := driver.LockInfo{Kind: key.Kind, Name: key.Name}
	holds, unheard := d.holdsOf(key, views)
	waiting := make(map[string]*wait)
	for _, h := range holds {
		if h.votes+unheard >= d.quorum {
			h.shown.Token = common(h.blocks, d.quorum).first
			info.Holders = append(info.Holders, h.shown)
			waiting[h.id] = &wait{holds: true} // it may also stand in the queue of a node that has no vote for it yet
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
			id, owner := hidden(w.Owner)
			if waiting[id] == nil {
				w.Owner = owner
				waiting[id] = &wait{waiter: w}
			}
			waiting[id].seen++
			waiting[id].place += w.Position
		}
	}
	// a majority knows who waits; what fewer know is left of a wait that they were not told the end of
	for id, w := range waiting {
		if w.seen+unheard < d.quorum {
			delete(waiting, id)
		}
	}
	info.Waiters = inOrder(waiting)
	return info
}

// wait is what the nodes know of one who waits.
type wait struct {
	waiter driver.Waiter
	seen   int  // by how many nodes
	place  int  // the sum of the places in their queues; one who has a vote already has none
	holds  bool // it holds the lock
}

// inOrder returns those who wait, by the mean of their places.
func inOrder(waiting map[string]*wait) []driver.Waiter {
	var waits []*wait
	for _, w := range waiting {
		if !w.holds {
			waits = append(waits, w)
		}
	}
	slices.SortFunc(waits, func(a, b *wait) int {
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

// holdsOf collects the holds of a lock, in no promised order, and how many nodes have not answered.
func (d *Driver) holdsOf(key driver.Key, views []map[driver.Key]driver.LockInfo) (holds []*hold, unheard int) {
	for i, view := range views {
		if view == nil {
			unheard++
			continue
		}
		for _, h := range view[key].Holders {
			id, owner := hidden(h.Owner)
			at := slices.IndexFunc(holds, func(o *hold) bool { return o.id == id })
			if at < 0 {
				at = len(holds)
				holds = append(holds, &hold{id: id, blocks: make([]block, len(views))})
			}
			o := holds[at]
			h.Owner = owner
			o.blocks[i] = blockOf(h.Token, 1)
			if o.votes++; o.votes == 1 || h.Until.After(o.shown.Until) {
				o.shown = h
			}
		}
	}
	return holds, unheard
}
