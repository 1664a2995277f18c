package shell

import (
	"context"
	"errors"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/core"
)

// A try that another client's retention refuses waits for a moment instead: the engine has asked that client to give
// the lock back. acquire.go calls it; hold_retain.go is the other side.

// recallWait is how long such a try waits at least. The engine has told the holder's client, whose release takes one
// message there and one back.
const RecallWait = 50 * time.Millisecond

// wouldRecall reports whether err refused a try because of a holder whose client may merely retain the lock.
func WouldRecall(err error) bool {
	var held *driver.HeldError
	return errors.As(err, &held) && held.Retains && driver.IsDefinite(err)
}

// recallLock continues a try after wouldRecall. It waits in the line, for as long as a recall takes: 50 ms, or four round
// trips if that is more. If the lock has not come by then it is really held, and recall returns refused. So a try of a
// lock that such a client really holds takes that long.
func recallLock(ctx context.Context, m *core.Lock, o *core.Owner, at core.Call, refused error) (*core.Hold, error) {
	c := ClientOfLock(m)
	most := max(RecallWait, 4*c.Reading().Since(at.Start)) // four round trips: the try was one
	bounded, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	w := NewWaiter(m, o, at)
	c.Lock()
	join := c.Join
	if o != nil && o.Named || m.Terms.Single {
		join = c.waitAlone
	}
	lease, err := join(bounded, w)
	if err != nil && bounded.Err() != nil && ctx.Err() == nil {
		return nil, refused
	}
	return lease, err
}
