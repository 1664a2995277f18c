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

// An answer to a requeue, or to a release, that is lost leaves it open whether that was carried out. A release that
// finds nothing then, while nothing else can have ended the hold, was not too late.
func TestRelease_AfterARequeueWithoutAnAnswer_IsNoLoss(t *testing.T) {
	t.Parallel()
	n, root := sharedServer(t), freshRoot()
	p := servers.NewProxy(t, n.Addr())
	d := open(t, []string{p.Addr()}, &Options{Root: root, Timeout: 20 * time.Second})
	r, next := request("lock"), request("lock")
	lost := make(chan driver.LostReason, 1)
	r.Lost = func(reason driver.LostReason, _ error) { lost <- reason }
	take(t, d, r)
	p.DropReplies() // it is carried out
	if _, err := d.Requeue(short(t), release(r), next); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("a requeue that is not answered says %v", err)
	}
	p.Pass()
	p.Reset()
	soon(t, "the release to be answered", func() bool {
		err := d.Release(bounded(t), release(r))
		if errors.Is(err, driver.ErrLost) {
			t.Fatalf("the release says %v", err)
		}
		return err == nil
	})
	take(t, d, next) // goes on where the requeue was
	select {
	case reason := <-lost:
		t.Errorf("the hold was told that it is lost: %s", reason)
	default:
	}
	give(t, d, next)
}
