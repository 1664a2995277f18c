// What operators see and do: listing locks, a look at one, and Break. names.go reads names and notes.
//
// Listings are for people. They take no part in a queue and write nothing. They are no snapshot, since ZooKeeper reads
// one node at a time; a node that goes in between is left out.

package zklock

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"

	"github.com/go-zookeeper/zk"
	"github.com/interlock-go/interlock/driver"
)

// Locks lists the locks in the order of their kinds and names. It first reads the names of all locks, one round trip
// for each kind. Then it reads each lock that has the prefix: one round trip for its queue and one for each node in it.
// Some locks are read ahead of the one that is yielded, and of each lock several nodes at a time. If the caller stops
// early, the reading stops.
//
// The list is no snapshot. Since and the rest come from the servers. A hold that was passed on inside a process is
// shown as it began.
func (d *Driver) Locks(ctx context.Context, prefix string) iter.Seq2[driver.LockInfo, error] {
	return func(yield func(driver.LockInfo, error) bool) {
		if err := d.list(ctx, prefix, yield); err != nil {
			yield(driver.LockInfo{}, d.explainOperator(ctx, "list", prefix, err))
		}
	}
}

// list yields locks until all are yielded or the caller wants no more.
func (d *Driver) list(ctx context.Context, prefix string, yield func(driver.LockInfo, error) bool) error {
	l, err := d.ready(ctx, nil, reach, false)
	if err != nil {
		return err
	}
	// So that nothing is missing that was there when the list was asked for.
	if err := l.agree(ctx); err != nil {
		return err
	}
	for _, kind := range kinds {
		found, err := l.children(ctx, d.tree.kind(kind))
		if errors.Is(err, zk.ErrNoNode) {
			continue
		}
		if err != nil {
			return err
		}
		more, err := l.listAll(ctx, keysOf(kind, found.names, prefix), yield)
		if err != nil || !more {
			return err
		}
	}
	return nil
}

// keysOf returns our locks among the nodes below a kind's whose names have the prefix, in the order of the nodes. Other
// nodes may be there, of an operator or of a later version, and are passed over.
func keysOf(kind driver.Kind, components []string, prefix string) []driver.Key {
	slices.Sort(components)
	var keys []driver.Key
	for _, component := range components {
		if name, ours := decode(component); ours && strings.HasPrefix(name, prefix) {
			keys = append(keys, driver.Key{Kind: kind, Name: name})
		}
	}
	return keys
}

// listedAtOnce is how many locks are read at a time. A server answers that many without a pause, and requests of others
// in between wait for a few milliseconds at most.
const listedAtOnce = 32

// listAll reads locks and yields, in their order, those that are not free. It reports whether more are wanted. Locks
// are read ahead, because each takes two round trips one after the other. Each has a channel of its own, so that they
// are yielded in order whatever order they come in.
func (l *link) listAll(
	ctx context.Context, keys []driver.Key, yield func(driver.LockInfo, error) bool,
) (more bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	var readers sync.WaitGroup
	defer readers.Wait()
	defer cancel() // before the wait for the readers: what they read is not wanted any more
	type queue struct {
		nodes []*seen
		err   error
	}
	ahead := make([]chan queue, len(keys))
	begin := func(i int) {
		if i < len(keys) {
			ahead[i] = make(chan queue, 1)
			readers.Go(func() { // ends with its last answer, or with ctx
				nodes, err := l.queue(ctx, l.s.d.tree.lock(keys[i]))
				ahead[i] <- queue{nodes, err}
			})
		}
	}
	for i := range listedAtOnce {
		begin(i)
	}
	for i, key := range keys {
		q := <-ahead[i]
		ahead[i] = nil
		begin(i + listedAtOnce)
		if q.err != nil {
			return false, q.err
		}
		if len(q.nodes) > 0 && !yield(infoOf(key, q.nodes), nil) {
			return false, nil
		}
	}
	return true, nil
}

// infoOf describes a lock whose queue is given. A holder is a request that nothing is in the way of.
func infoOf(key driver.Key, nodes []*seen) driver.LockInfo {
	info := driver.LockInfo{Kind: key.Kind, Name: key.Name}
	if key.Kind != driver.KindRWMutex {
		info.Limit = 1
	}
	// Who holds is not stored anywhere. It follows from the queue, by the rule that waiters use.
	all := queuePlacesOf(nodes)
	for i, n := range nodes {
		if blocker(all, i) < 0 {
			info.Holders = append(info.Holders, n.holder())
		} else {
			info.Waiters = append(info.Waiters, n.waiter(len(info.Waiters)+1))
		}
	}
	return info
}

// holdersOf returns the nodes that nothing is in the way of.
func holdersOf(nodes []*seen) []*seen {
	var holders []*seen
	all := queuePlacesOf(nodes)
	for i, n := range nodes {
		if blocker(all, i) < 0 {
			holders = append(holders, n)
		}
	}
	return holders
}

// queuePlacesOf returns the places of nodes that were read.
func queuePlacesOf(nodes []*seen) []queuePlace {
	all := make([]queuePlace, len(nodes))
	for i, n := range nodes {
		all[i] = n.queuePlace
	}
	return all
}

// readers is how many nodes are read at a time. The library sends requests of one connection together, so this many
// cost little more time than one.
const readers = 16

// queue reads all nodes of a lock's queue that are still there, in their order. It is not shared as a view is: waiters
// need names only, and this reads the data as well.
func (l *link) queue(ctx context.Context, lock string) ([]*seen, error) {
	found, err := l.children(ctx, lock)
	if errors.Is(err, zk.ErrNoNode) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	all := inOrder(found.names)
	nodes, errs := make([]*seen, len(all)), make([]error, len(all))
	var group sync.WaitGroup
	for worker := range min(readers, len(all)) {
		group.Go(func() { // ends with its last answer, or with ctx
			// Each takes every sixteenth node, so they share no counter and no result.
			for i := worker; i < len(all) && ctx.Err() == nil; i += readers {
				if nodes[i], errs[i] = l.read(ctx, lock, all[i]); errs[i] != nil {
					return
				}
			}
		})
	}
	group.Wait()
	if err := errors.Join(append(errs, ctx.Err())...); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(nodes, func(n *seen) bool { return n == nil }), nil
}

// Look, the reading of one lock.
//
// A question about one lock must not list all: it costs what its own queue costs, however many locks there are.

var _ driver.Looker = (*Driver)(nil)

// Look reads the queue of one lock. It costs a round trip to see everything that was written before, one for the list,
// and one for each node in it, several of which are read at a time.
func (d *Driver) Look(ctx context.Context, key driver.Key) (driver.LockInfo, error) {
	none := driver.LockInfo{Kind: key.Kind, Name: key.Name}
	if !slices.Contains(kinds, key.Kind) {
		return none, fmt.Errorf("zk: locks of kind %q: %w", key.Kind, driver.ErrUnsupported)
	}
	nodes, err := d.nodesOf(ctx, key)
	if err != nil {
		return none, d.explainOperator(ctx, "look at", key.Name, err)
	}
	// A lock without a node is free, or was never used.
	if len(nodes) == 0 {
		return none, nil
	}
	return infoOf(key, nodes), nil
}

// nodesOf reads the queue of a lock as it is now. The ensemble is asked first: an operator who has just released a lock
// elsewhere must not see it held.
func (d *Driver) nodesOf(ctx context.Context, key driver.Key) ([]*seen, error) {
	l, err := d.ready(ctx, nil, reach, false)
	if err != nil {
		return nil, err
	}
	if err := l.agree(ctx); err != nil {
		return nil, err
	}
	return l.queue(ctx, d.tree.lock(key))
}

// Break, by which an operator ends a hold: its node is deleted, and the watch of watch.go tells the holder. release.go
// has the ordinary end of a hold.
//
// No notice is left for the holder: a node that is gone, and that the holder has not deleted itself, can only have been
// broken. An operator's own delete is told in the same way.

// Break ends the hold that has the given token: it deletes its node, so that its release finds nothing, and lets in the
// next waiter. The holder watches its own node and learns of it at once; the holder of a hold younger than a tenth of a
// second learns of it when the hold is that old. It costs three round trips and one for each holder.
//
// It returns driver.ErrNotHeld if nobody holds the lock, and a *driver.HeldError if the token is not a current one.
func (d *Driver) Break(ctx context.Context, key driver.Key, token uint64) error {
	if err := d.breakOf(ctx, key, token); err != nil {
		return d.explainOperator(ctx, "break", key.Name, err)
	}
	return nil
}

// breakOf is Break without the classes of errors. It begins anew if the holder has left in between, because another may
// hold the lock by now, whose token is another.
func (d *Driver) breakOf(ctx context.Context, key driver.Key, token uint64) error {
	l, err := d.ready(ctx, nil, reach, false)
	if err != nil {
		return err
	}
	// So that the list is not older than this call.
	if err := l.agree(ctx); err != nil {
		return err
	}
	lock := d.tree.lock(key)
	for {
		nodes, err := l.queue(ctx, lock)
		if err != nil {
			return err
		}
		holders := holdersOf(nodes)
		if len(holders) == 0 {
			return driver.ErrNotHeld
		}
		current := withToken(holders, token)
		if current == nil {
			return heldBy(key, holders[0])
		}
		// The node is deleted by its path, which no later request ever has, so a break that comes late ends nothing
		// else.
		err = l.remove(ctx, lock+"/"+current.name)
		if errors.Is(err, zk.ErrNoNode) { // it was released meanwhile
			continue
		}
		if err == nil {
			if current.retained { // its client removes the mark too, unless it stands still
				l.s.d.spawn(func() { _ = l.delete(l.s.d.life, markOf(lock+"/"+current.name)) })
			}
			l.tidy(lock)
		}
		return err
	}
}

// withToken returns the holder that has the token, or nil. Any token of its block is the holder's: after passes inside
// the process it has a later one than the first, which the servers do not know.
func withToken(holders []*seen, token uint64) *seen {
	for _, h := range holders {
		if h.token() <= token && token-h.token() < uint64(h.Tokens) {
			return h
		}
	}
	return nil
}

// explainOperator says what an error means to an operator. Most errors mean that the outcome is unknown.
func (d *Driver) explainOperator(ctx context.Context, op, name string, err error) error {
	var held *driver.HeldError
	switch {
	case errors.As(err, &held), errors.Is(err, driver.ErrNotHeld), errors.Is(err, driver.ErrClosed):
		return err
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, errOver) && d.isClosed():
		return driver.ErrClosed
	}
	return classed(op, name, err)
}
