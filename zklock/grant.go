// From a place without anybody before it to a hold, and what to do when numbers run out. acquire.go calls grant last.
//
// Nothing is written for a grant: the queue says who has the lock. So the last step is a decision of this process
// alone, and it must be made while the session is known to live.

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

// grant makes the request a hold.
func (a *attempt) grant(ctx context.Context, l *link) error {
	e := a.e
	// The session is asked first, and then the queue once more: what the queue said may be from before the session's
	// end.
	if !l.s.isTrusted() {
		e.wait.blocker = ""
		return errAgain
	}
	if e.czxid > a.d.zxidEnd { // its token would not fit
		if err := a.withdraw(ctx, l); err != nil {
			return err
		}
		return fmt.Errorf("zk: transaction %#x makes no token below 2^63: %w", e.czxid, driver.ErrUnsupported)
	}
	waited := e.wait.held != nil
	err := a.d.hold(e, l.s)
	// Only what is a hold already can listen, so that comes last.
	// A hold that came after a wait is not retained, so it is in no hurry to hear who asks; see listenNow.
	if err == nil && e.retains && e.wanted != nil && !waited {
		a.d.listenNow(l, e)
	}
	return err
}

// withdraw removes the request's node, for a request that goes on or fails for good. Its wait begins anew with another
// node, or the request ends with an error. In both cases nobody may wait behind the old node.
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
// bits, and would begin anew with the lowest number, which would be the first in the queue. A million numbers are left
// for requests that come before the node is replaced. A client that sees a large number only gives way, so all clients
// need not agree on the moment.
const spent = 1<<31 - 1 - 1<<20

// drain gives way until the queue is empty, and then removes the lock's node: the next one counts from 0. This happens
// once in two thousand million acquisitions of a lock that is never free for long, and costs the waiters their order.
// Everybody who sees such a number gives way, so the queue does become empty.
func (a *attempt) drain(ctx context.Context, l *link) error {
	if err := a.withdraw(ctx, l); err != nil {
		return err
	}
	err := l.delete(ctx, a.d.tree.lock(a.e.key))
	// Only an empty node can be removed. The servers refuse it while anybody stands in the queue, and the request gives
	// way again.
	switch {
	case err == nil:
		return errAgain
	case !errors.Is(err, zk.ErrNotEmpty):
		return err
	case a.r.Try:
		return heldBy(a.e.key, nil)
	}
	// The pause is random, so that clients that give way do not come back all at once.
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

// drainPause is the shortest pause before another look; a random part is added, so that not all look at once.
const drainPause = 20 * time.Millisecond
