// Getting a node for a request. acquire.go calls put; making.go makes the node; queue.go goes on when it is not alone.
//
// A node that may exist is never left alone: the making stays in the entry until it is known what became of it. Its
// answer, or one look over a later connection, tells. A look over the same connection proves nothing, since the request
// may still be on its way; see link.

package zklock

import (
	"context"
	"errors"
	"strings"

	"github.com/go-zookeeper/zk"
	"github.com/interlock-go/interlock/driver"
)

// put blocks until the request has a node, and reports whether it is the only one in the queue. Two nodes of one
// request would stand in its own way, so a second is not made before the end of the first is known.
func (a *attempt) put(ctx context.Context, l *link) (alone bool, err error) {
	w := a.e.wait
	m := w.making // of an earlier call whose context ended, if not nil
	if m == nil {
		m = a.start(l)
	}
	select {
	case <-m.done:
	case <-ctx.Done():
		return false, ctx.Err()
	case <-w.gone:
		return false, driver.ErrLost
	case <-l.s.over:
		return false, errOver
	}
	switch {
	case m.err == nil:
		w.making = nil
		a.own(m.path, m.czxid)
		// The numbers are running out: the lock's node must be replaced.
		if m.seq < 0 || m.seq >= a.d.spentAt {
			return false, a.drain(ctx, l)
		}
		return m.alone, nil
	case !errors.Is(m.err, errNoAnswer):
		w.making = nil // it is certain that this attempt has left no node
		// The hold to give back was ended by somebody else, so there is nothing to requeue.
		if errors.Is(m.err, errNothingToGive) {
			a.nothingToGive(m.hold)
			a.d.drop(a.e)
			return false, driver.ErrLost
		}
		return false, m.err
	// The same connection: nothing can be found out over it. The caller comes back with the next one.
	case m.l == l:
		return false, errNoAnswer
	}
	return false, a.find(ctx, l, m)
}

// start makes a node in the background.
func (a *attempt) start(l *link) *making {
	d := a.d
	m := &making{
		l: l, lock: d.tree.lock(a.e.key), mode: a.r.Mode, note: noteOf(a.r), done: make(chan struct{}),
	}
	d.mu.Lock()
	m.name = d.newName(m.mode)
	if a.give != nil {
		m.give, m.hold = a.give.path, a.give
		// From here on the hold may be gone by our own doing, and that must not look like a break.
		a.give.ending, a.give.unsure = true, true
	}
	d.mu.Unlock()
	a.e.wait.making = m
	// The driver is closed: nothing was sent, and done must be closed for whoever waits.
	if !d.spawn(m.run) {
		m.err = errOver
		close(m.done)
	}
	return m
}

// nothingToGive ends the hold that was to be given back and is gone. An Acquire may have taken up the wait of a
// Requeue, and then does not have the turn of the hold. If somebody else has it, that is a release, which finds out by
// itself.
func (a *attempt) nothingToGive(hold *entry) {
	if a.give == nil {
		select {
		case hold.turn <- struct{}{}:
			defer hold.give()
		default:
			return
		}
	}
	a.d.broke(hold)
}

// own records the node that the request has, or that it has none. asOf begins with the node's own transaction: what was
// written to the node before a later look is no break of the hold; see guard.
func (a *attempt) own(path string, czxid int64) {
	a.given() // the hold to give back has gone in the same transaction
	a.d.mu.Lock()
	defer a.d.mu.Unlock()
	a.e.path, a.e.czxid, a.e.asOf = path, czxid, czxid
}

// find finds out whether an attempt whose reply was lost has made its node. Since then the version of the session's
// node was raised, so it has done so by now or never will; see link. Only a node of our own session counts. It is not
// known whether the node was alone, so the queue is read next.
func (a *attempt) find(ctx context.Context, l *link, m *making) error {
	path, czxid, err := l.find(ctx, m)
	if err != nil {
		return err
	}
	a.e.wait.making = nil
	if path != "" {
		a.own(path, czxid)
	}
	return errAgain
}

// find returns the node that m has made, or "". Its name tells: no other request has it.
func (l *link) find(ctx context.Context, m *making) (path string, czxid int64, err error) {
	found, err := l.children(ctx, m.lock)
	if errors.Is(err, zk.ErrNoNode) {
		return "", 0, nil
	}
	if err != nil {
		return "", 0, err
	}
	for _, name := range found.names {
		if !strings.HasPrefix(name, m.name) {
			continue
		}
		got, err := l.get(ctx, m.lock+"/"+name)
		switch {
		case errors.Is(err, zk.ErrNoNode):
			return "", 0, nil
		case err != nil:
			return "", 0, err
		// A node of another session ends with that session.
		case got.stat.EphemeralOwner == l.s.id:
			return m.lock + "/" + name, got.stat.Czxid, nil
		}
	}
	return "", 0, nil
}
