package zklock

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/interlock-go/interlock/driver"
)

// grant turns the request into a hold.
func (a *attempt) grant(ctx context.Context, l *link) error {
	e := a.e
	if !l.s.isTrusted() { // the session is asked first, and then the queue
		e.wait.blocker = ""
		return errAgain
	}
	if e.czxid > a.d.zxidEnd {
		if err := a.withdraw(ctx, l); err != nil {
			return err
		}
		return fmt.Errorf("zk: transaction %#x makes no token below 2^63: %w", e.czxid, driver.ErrUnsupported)
	}
	waited := e.wait.held != nil
	err := a.d.hold(e, l.s)
	if err == nil && e.retains && e.wanted != nil && !waited {
		a.d.listenNow(l, e)
	}
	return err
}

// withdraw removes the request's node.
func (a *attempt) withdraw(ctx context.Context, l *link) error {
	if err := l.delete(ctx, a.e.path); err != nil {
		return err
	}
	l.tidy(a.d.tree.lock(a.e.key))
	a.own("", 0)
	a.e.wait.blocker = ""
	return nil
}

// spent is the number in a node's name from which on a lock's node is not used any more. The server counts with 32
// bits, and would begin anew with the lowest number, which is the first in the queue. A million are left for those who
// come before it is replaced.
const spent = 1<<31 - 1 - 1<<20

// drain gives way until the queue is empty, and removes the lock's node then: the next one counts from 0. It happens
// once in two thousand million acquisitions of a lock that is never free for long, and costs the order of those who
// wait.
func (a *attempt) drain(ctx context.Context, l *link) error {
	if err := a.withdraw(ctx, l); err != nil {
		return err
	}
	err := l.delete(ctx, a.d.tree.lock(a.e.key))
	switch {
	case err == nil:
		return errAgain
	case !errors.Is(err, zk.ErrNotEmpty):
		return err
	case a.r.Try:
		return heldBy(a.e.key, nil)
	}
	pause := time.NewTimer(drainPause + rand.N(drainPause))
	defer pause.Stop()
	select {
	case <-pause.C:
		return errAgain
	case <-ctx.Done():
		return ctx.Err()
	case <-a.e.wait.gone:
		return driver.ErrLost
	}
}

const drainPause = 20 * time.Millisecond
