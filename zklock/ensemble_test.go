package zklock

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/internal/servers"
)

// Servers that stand alone know nothing of each other, and each would grant the same lock. Which of them a client is
// connected to is chance, so all must be refused.
func TestOpen_OfServersThatStandAlone_IsRefused(t *testing.T) {
	t.Parallel()
	url := urlOf(freshRoot(), sharedServer(t).Addr(), servers.ZooKeeper(t))
	for range 4 {
		c, err := interlock.Open(bounded(t), url, nil)
		if err == nil {
			_ = c.Close()
			t.Fatal("they were opened")
		}
		if !errors.Is(err, errStrangers) || !strings.Contains(err.Error(), "server.N") {
			t.Errorf("Open says %v", err)
		}
	}
}

// One server may have several names, and a follower that lags or is away is no stranger.
func TestOpen_OfOneServerByManyNames_OrOneEnsemble(t *testing.T) {
	t.Parallel()
	n, e := sharedServer(t), servers.NewZooKeeperEnsemble(t, options())
	p, silent := servers.NewProxy(t, n.Addr()), servers.NewProxy(t, n.Addr())
	silent.BlackHole(servers.BothWays)
	for _, addrs := range [][]string{
		{n.Addr(), p.Addr()},
		{n.Addr(), silent.Addr()},
		e.Addrs(),
		append(e.Addrs(), servers.NewProxy(t, e.Addrs()[0]).Addr()), // more names than members
	} {
		c := openLocks(t, urlOf(freshRoot(), addrs...), leased(faultLease))
		mustUnlock(t, mustLock(t, c, "lock"))
	}
}

// A server that was away when the list was opened is asked by the next session: nothing is granted there.
func TestSession_WithAServerThatWasAway_IsRefusedIfItIsAStranger(t *testing.T) {
	t.Parallel()
	n, stranger := servers.ZooKeeperServer(t, nil), servers.ZooKeeperServer(t, nil)
	stranger.Kill()
	d := open(t, []string{n.Addr(), stranger.Addr()}, &Options{Root: freshRoot(), Timeout: faultLease})
	r := request("lock")
	take(t, d, r)
	stranger.Restart()
	give(t, d, r)
	d.mu.Lock()
	s := d.session
	d.mu.Unlock()
	s.end(errOver)
	soon(t, "the next session to be refused", func() bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		return errors.Is(d.failure, errStrangers)
	})
	ctx := short(t)
	if _, err := d.Acquire(ctx, request("lock")); err == nil {
		t.Error("a stranger grants a lock")
	}
	stranger.Kill()
	soon(t, "the driver to be of use when the stranger has gone", func() bool {
		again := request("lock")
		_, err := d.Acquire(bounded(t), again)
		return err == nil && d.Release(bounded(t), release(again)) == nil
	})
}

// A check that Close interrupts leaves no session of the library behind.
func TestVisit_OfADriverThatIsClosed_LeavesNothing(t *testing.T) {
	t.Parallel()
	n := sharedServer(t)
	d := open(t, []string{n.Addr()}, &Options{Root: freshRoot()})
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	v, err := d.visit(ctx, n.Addr())
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("the visit says %v", err)
	}
	// The library closes the conn for good, and refuses what is asked for at once.
	if _, _, err := v.conn.Exists("/"); !errors.Is(err, zk.ErrConnectionClosed) {
		t.Errorf("the visitor's session says %v", err)
	}
	v.leave() // for a test that fails
}
