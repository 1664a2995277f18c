package zklock

import (
	"context"
	"errors"
	"strings"

	"github.com/go-zookeeper/zk"
	"github.com/interlock-go/interlock/driver"
)

// put returns when the request has a node, and reports whether that is the only one.
func (a *attempt) put(ctx context.Context, l *link) (alone bool, err error) {
	w := a.e.wait
	m := w.making
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
		if m.seq < 0 || m.seq >= a.d.spentAt {
			return false, a.drain(ctx, l)
		}
		return m.alone, nil
	case !errors.Is(m.err, errNoAnswer):
		w.making = nil
		if errors.Is(m.err, errNothingToGive) {
			a.d.broke(a.give)
			a.d.drop(a.e)
			return false, driver.ErrLost
		}
		return false, m.err
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
		m.give = a.give.path
		a.give.ending, a.give.unsure = true, true
	}
	d.mu.Unlock()
	a.e.wait.making = m
	if !d.spawn(m.run) {
		m.err = errOver
		close(m.done)
	}
	return m
}

// own takes in the node that the request has.
func (a *attempt) own(path string, czxid int64) {
	a.given()
	a.d.mu.Lock()
	defer a.d.mu.Unlock()
	a.e.path, a.e.czxid, a.e.asOf = path, czxid, czxid
}

// find looks whether an attempt whose reply was lost has made its node. Since then the session's version was raised, so
// it has by now or never will; see link. Only a node of our own session counts.
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

// find returns the node that m has made, or nothing.
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
		case got.stat.EphemeralOwner == l.s.id:
			return m.lock + "/" + name, got.stat.Czxid, nil
		}
	}
	return "", 0, nil
}
