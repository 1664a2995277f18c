package zklock

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/servers"
)

// The answer to a requeue may come when its caller has gone, and another call has taken up the wait. That one knows
// nothing of the hold that was to be given back, which somebody had broken meanwhile.
func TestAcquire_ThatTakesUpARequeueOfABrokenHold_SaysThatItIsLost(t *testing.T) {
	t.Parallel()
	n, root := sharedServer(t), freshRoot()
	a, p := newAdmin(t, n.Addr()), servers.NewProxy(t, n.Addr())
	d := open(t, []string{p.Addr()}, &Options{Root: root, Timeout: 20 * time.Second})
	r, next := request("lock"), request("lock")
	take(t, d, r)
	p.BlackHole(servers.ToClient) // so that the client hears of nothing
	lock := root + "/mutex/lock"
	if err := a.Delete(lock+"/"+a.nodes(lock)[0], -1); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Requeue(short(t), release(r), next); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("a requeue that is not answered says %v", err)
	}
	p.Pass()
	if _, err := d.Acquire(bounded(t), next); !errors.Is(err, driver.ErrLost) {
		t.Errorf("Acquire says %v", err)
	}
	if err := d.Release(bounded(t), release(r)); !errors.Is(err, driver.ErrLost) {
		t.Errorf("the release of the broken hold says %v", err)
	}
	if names := a.nodes(lock); len(names) > 0 {
		t.Errorf("the queue is %v", names)
	}
	again := request("lock")
	take(t, d, again)
	give(t, d, again)
}
