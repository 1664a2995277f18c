package zklock

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/go-zookeeper/zk"
	"github.com/interlock-go/interlock/driver"
)

// look reads the queue and reports whether nobody is in the way. Otherwise the nearest node that is gets watched, and
// the caller is told who has the lock; a try is refused.
func (a *attempt) look(ctx context.Context, l *link) (free bool, err error) {
	e := a.e
	lock := a.d.tree.lock(e.key)
	found, err := l.view(ctx, lock)
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		return false, err
	}
	var all []queuePlace
	if err == nil {
		all = found.places
	}
	name := strings.TrimPrefix(e.path, lock+"/")
	mine := slices.IndexFunc(all, func(p queuePlace) bool { return p.name == name })
	if mine < 0 { // somebody has removed it, so it begins again
		a.own("", 0)
		return false, errAgain
	}
	in := blocker(all, mine)
	if in < 0 {
		e.asOf = max(e.czxid, found.stat.Pzxid) // what was written to its node before that is nobody's end
		return true, nil
	}
	if a.r.Try {
		return false, a.refuse(ctx, l, all[0])
	}
	return false, a.queueBehind(ctx, l, all, in)
}

// queueBehind watches the node at index in, and tells who has the lock.
func (a *attempt) queueBehind(ctx context.Context, l *link, all []queuePlace, in int) error {
	e, w := a.e, a.e.wait
	lock := a.d.tree.lock(e.key)
	path := lock + "/" + all[in].name
	before, err := l.watchFor(ctx, e, path)
	if err != nil {
		return err
	}
	if before == nil {
		return errAgain // it has gone since
	}
	holder := &seen{queuePlace: all[in], note: parseNote(before.data), stat: before.stat}
	if in > 0 {
		if holder, err = l.read(ctx, lock, all[0]); err != nil {
			l.s.unwatch(e, path)
			return err
		}
	}
	w.blocker = path
	w.held = heldBy(e.key, holder)
	if a.r.Waiting != nil {
		a.r.Waiting(w.held)
	}
	return nil
}

// await returns errAgain when something has happened to the node that was in the way: then the queue is to be looked
// at, which alone lets the request in. An event does not say what it was, or whose doing: one who waited may have left,
// and anybody may write to a node. A request that gives up stays in the queue, and keeps its watch, until it is undone
// or asked again.
func (a *attempt) await(ctx context.Context, l *link) error {
	e, w := a.e, a.e.wait
	select {
	case <-w.news:
	case <-ctx.Done():
		return ctx.Err()
	case <-w.gone:
		return driver.ErrLost
	case <-l.s.over:
		return errOver
	case <-a.d.life.Done():
		return driver.ErrClosed
	}
	path := w.blocker
	w.blocker = ""
	l.s.unwatch(e, path)
	return errAgain
}

// refuse ends a try: it names the holder, and takes the node away at the same time. It does neither if the holder has
// just left, as one that merely retained the lock does when it is asked: then nobody may have the lock, and it looks
// again.
func (a *attempt) refuse(ctx context.Context, l *link, first queuePlace) error {
	lock, e := a.d.tree.lock(a.e.key), a.e
	removed := make(chan error, 1)
	path := e.path
	if !a.d.spawn(func() { removed <- l.leaveBehind(ctx, lock+"/"+first.name, path) }) {
		return driver.ErrClosed
	}
	holder, err := l.read(ctx, lock, first)
	if gone := <-removed; gone != nil {
		return gone
	}
	a.own("", 0)
	l.tidy(lock)
	switch {
	case err != nil:
		return err
	case holder == nil: // it left after that, so the request begins anew
		return errAgain
	}
	return heldBy(e.key, holder)
}

// leaveBehind deletes the node at path, which may be gone, if there is one of a holder. Otherwise it says errAgain.
func (l *link) leaveBehind(ctx context.Context, holder, path string) error {
	failed, err := l.transact(ctx, &zk.CheckVersionRequest{Path: holder, Version: -1},
		&zk.DeleteRequest{Path: path, Version: -1})
	switch {
	case failed == 0 && errors.Is(err, zk.ErrNoNode):
		return errAgain
	case failed == 1 && errors.Is(err, zk.ErrNoNode):
		return nil
	}
	return err
}
