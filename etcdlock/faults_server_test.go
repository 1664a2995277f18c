package etcdlock_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/internal/servers"
)

// slowElection has requests wait as long as an election may take on a busy machine.
const slowElection = "?request-timeout=8s"

// survives has a lock held and waited for while a fault happens, and looks that neither is lost.
func survives(t *testing.T, url string, fault func()) {
	t.Helper()
	watch := newNews()
	o := &interlock.Options{Lease: calm, Observer: watch.Observer()}
	a, b := openLocks(t, url, o), openLocks(t, url, o)
	held := mustLock(t, a, "lock")
	in := locking(t, b, "lock")
	receive(t, "the waiter to be queued", watch.Queued)
	fault()
	select {
	case <-held.Lost():
		t.Fatalf("the hold is lost: %v", held.Err())
	case l := <-in:
		t.Fatalf("two are in: %v", l)
	case <-time.After(100 * time.Millisecond):
	}
	begin := time.Now()
	mustUnlock(t, held)
	l := receive(t, "the waiter to get in", in)
	t.Logf("the hand-over took %v", time.Since(begin))
	if l.Token() <= held.Token() {
		t.Errorf("token %d after %d", l.Token(), held.Token())
	}
	mustUnlock(t, l)
	mustUnlock(t, mustLock(t, a, "lock"))
}

func TestConnectionsKilled_HoldsAndWaitsGoOn(t *testing.T) {
	t.Parallel()
	s := servers.EtcdServer(t, nil)
	p := servers.NewProxy(t, s.Addr())
	survives(t, etcdURL(p.Addr()), func() {
		for range 3 {
			p.Reset()
			<-time.After(20 * time.Millisecond)
		}
	})
	noneLeft(t, s)
}

func TestServerRestart_HoldsAndWaitsGoOn(t *testing.T) {
	t.Parallel()
	s := servers.EtcdServer(t, nil)
	survives(t, etcdURL(s.Addr()), s.Restart)
	noneLeft(t, s)
}

func TestLeaderKilled_HoldsAndWaitsGoOn(t *testing.T) {
	t.Parallel()
	c := servers.EtcdCluster(t, 3, nil)
	var leader *servers.EtcdNode
	survives(t, etcdURL(c.Addrs()...)+slowElection, func() {
		leader = c.Leader(t)
		leader.Kill()
	})
	leader.Restart()
	noneLeft(t, c.Leader(t))
}

// A leader that hangs keeps its connections: requests to it are given up and go elsewhere, and so does the watch.
func TestLeaderHangs_HoldsAndWaitsGoOn(t *testing.T) {
	t.Parallel()
	c := servers.EtcdCluster(t, 3, nil)
	leader := c.Leader(t)
	survives(t, etcdURL(c.Addrs()...)+slowElection, leader.Stop)
	leader.Cont()
	noneLeft(t, c.Leader(t))
}

// What was carried out although nobody heard of it is found or taken back.
func TestRepliesLost_NothingIsTakenTwiceAndNothingIsLeft(t *testing.T) {
	t.Parallel()
	s := servers.EtcdServer(t, nil)
	p := servers.NewProxy(t, s.Addr())
	a := openLocks(t, etcdURL(p.Addr()), &interlock.Options{Lease: calm})
	b := openLocks(t, etcdURL(s.Addr()), &interlock.Options{Lease: calm})
	for i := range 4 {
		name := fmt.Sprint("lock ", i)
		p.DropReplies()
		ctx, cancel := context.WithTimeout(context.Background(), time.Duration(i+1)*100*time.Millisecond)
		l, err := a.Lock(ctx, name)
		if err == nil || errors.Is(err, interlock.ErrHeld) {
			t.Fatalf("Lock without a reply returns %v, %v", l, err)
		}
		cancel()
		p.Pass()
		p.Reset()
		mustUnlock(t, mustLock(t, b, name))

		held := mustLock(t, a, name)
		p.DropReplies()
		ctx, cancel = context.WithTimeout(context.Background(), 100*time.Millisecond)
		if err := held.Unlock(ctx); err == nil || errors.Is(err, interlock.ErrLost) {
			t.Fatalf("Unlock without a reply says %v", err)
		}
		cancel()
		p.Pass()
		p.Reset()
		mustUnlock(t, mustLock(t, b, name))
	}
	noneLeft(t, s)
}
