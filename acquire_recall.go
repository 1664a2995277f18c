package interlock

import (
	"context"
	"errors"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// recallWait is for how long at least a try waits for a lock to come back that its holder may merely retain: the engine
// has told that one, and what it has to do takes a round trip of its own and one of the engine.
const recallWait = 50 * time.Millisecond

// wouldRecall reports whether a try was refused with err because of a holder who may merely retain the lock.
func wouldRecall(err error) bool {
	var held *HeldError
	return errors.As(err, &held) && held.Retains && driver.IsDefinite(err)
}

// recall goes on with a try, which began at start and was refused with that error: it waits in the line until the lock
// has come back, if its holder merely retains it, for no longer than a recall takes.
func (m *Mutex) recall(ctx context.Context, o *owner, start instant, refused error) (*Lease, error) {
	c := m.c
	most := max(recallWait, 4*c.reading().since(start)) // four round trips: the try was one
	bounded, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	w := m.newWaiter(o, start)
	c.lock()
	join := c.join
	if o != nil && o.named || m.p.single {
		join = c.joinAlone
	}
	lease, err := join(bounded, w)
	if err != nil && bounded.Err() != nil && ctx.Err() == nil {
		return nil, refused
	}
	return lease, err
}
