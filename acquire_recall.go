package interlock

import (
	"context"
	"errors"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// recallWait is how long a try waits, at least, for a lock that its holder may merely retain. The engine has told the
// holder, whose release takes a message to it and one back.
const recallWait = 50 * time.Millisecond

// wouldRecall reports whether a try was refused with err because of a holder who may merely retain the lock.
func wouldRecall(err error) bool {
	var held *HeldError
	return errors.As(err, &held) && held.Retains && driver.IsDefinite(err)
}

// recall continues a try that was refused because of a holder who may merely retain the lock. It waits in the line, for
// no longer than a recall takes.
func (m *Mutex) recall(ctx context.Context, o *owner, at call, refused error) (*Lease, error) {
	c := m.c
	most := max(recallWait, 4*c.reading().since(at.start)) // four round trips: the try was one
	bounded, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	w := m.newWaiter(o, at)
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
