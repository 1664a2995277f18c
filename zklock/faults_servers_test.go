package zklock

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/internal/locktest"
	"github.com/interlock-go/interlock/internal/servers"
)

// A server that restarts knows its sessions again.
func TestServerRestart_KeepsHoldsAndPlaces(t *testing.T) {
	t.Parallel()
	n, root := servers.ZooKeeperServer(t, nil), freshRoot()
	c := openLocks(t, urlOf(root, n.Addr()), leased(time.Minute))
	w := locktest.NewInside(t, "lock")
	l := mustLock(t, c, "lock")
	w.Enter(l)
	first := startLock(t, urlOf(root, n.Addr()), leased(time.Minute), "lock")
	second := startLock(t, urlOf(root, n.Addr()), leased(time.Minute), "lock")
	n.Restart()
	if err := l.Err(); err != nil {
		t.Fatalf("the hold was lost in a restart: %v", err)
	}
	first.stillWaits("after the restart")
	mustUnlock(t, l)
	for _, next := range []*locking{first, second} {
		got := next.granted("in the old order")
		w.Enter(got.l)
		mustUnlock(t, got.l)
	}
}

// The leader dies with the lock held: the ensemble goes on, the hold and the queue with it.
func TestLeaderKilled_KeepsHoldsAndPlaces(t *testing.T) {
	e, root := sharedEnsemble(t), freshRoot()
	url := urlOf(root, e.Addrs()...)
	w := locktest.NewInside(t, "lock")
	o := leased(time.Minute)
	l := mustLock(t, openLocks(t, url, o), "lock")
	w.Enter(l)
	first := startLock(t, url, o, "lock")
	second := startLock(t, url, o, "lock")
	killed := time.Now()
	dead := e.KillLeader()
	t.Logf("the others had a leader after %v", time.Since(killed))
	t.Cleanup(func() {
		dead.Restart()
		e.AwaitReady()
	})
	if err := l.Err(); err != nil {
		t.Fatalf("the hold was lost with the leader: %v", err)
	}
	first.stillWaits("after the leader has died")
	mustUnlock(t, l)
	for _, next := range []*locking{first, second} {
		got := next.granted("in the old order")
		w.Enter(got.l)
		mustUnlock(t, got.l)
	}
}

// A leader that hangs is replaced too, and what it says when it goes on counts no more.
func TestLeaderHangs_NoTwoHolders(t *testing.T) {
	e, root := sharedEnsemble(t), freshRoot()
	url := urlOf(root, e.Addrs()...)
	const lease = 2 * time.Second
	w := locktest.NewInside(t, "lock")
	stop := make(chan struct{})
	var all sync.WaitGroup
	for range 3 {
		c := openLocks(t, url, leased(lease))
		all.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				l, err := c.Lock(bounded(t), "lock")
				if err != nil {
					if !errors.Is(err, interlock.ErrUnavailable) {
						t.Errorf("Lock: %v", err)
					}
					continue
				}
				w.Enter(l)
				<-time.After(time.Millisecond)
				_ = l.Unlock(bounded(t)) // it may have been lost
			}
		})
	}
	<-time.After(100 * time.Millisecond)
	old := e.Leader()
	old.Stop()
	defer old.Cont()
	soon(t, "the others to elect another", func() bool { return e.Leader() != old })
	before := w.Entries()
	soon(t, "locks to be taken from the new leader", func() bool { return w.Entries() > before+20 })
	old.Cont()
	e.AwaitReady()
	before = w.Entries()
	soon(t, "locks to be taken with all servers", func() bool { return w.Entries() > before+20 })
	close(stop)
	all.Wait()
	t.Logf("%d were inside", w.Entries())
}

// A minority grants nothing.
func TestMinority_GrantsNothing(t *testing.T) {
	e, root := sharedEnsemble(t), freshRoot()
	c := openLocks(t, urlOf(root, e.Addrs()...), leased(faultLease))
	l := mustLock(t, c, "lock")
	nodes := e.Nodes()
	nodes[0].Kill()
	nodes[1].Kill()
	gone(t, l)
	if _, err := c.TryLock(short(t), "another"); err == nil || errors.Is(err, interlock.ErrHeld) {
		t.Errorf("a try with one server of three says %v", err)
	}
	nodes[0].Restart()
	nodes[1].Restart()
	e.AwaitReady()
	goesOn(t, c, "lock") // the servers have just started
}

// A server that comes back with older data, or with none, does not take back clients that have seen newer data, and
// says nothing to them. They go on in a session that has seen none.
func TestServerWithOlderData_IsUsedAgain(t *testing.T) {
	t.Parallel()
	for name, older := range map[string]bool{"empty": false, "a backup": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n, root := servers.ZooKeeperServer(t, nil), freshRoot()
			data, backup := filepath.Join(n.Dir, "data", "version-2"), filepath.Join(t.TempDir(), "backup")
			c := openLocks(t, urlOf(root, n.Addr()), leased(faultLease))
			l := mustLock(t, c, "lock")
			n.Kill()
			if err := os.CopyFS(backup, os.DirFS(data)); err != nil {
				t.Fatal(err)
			}
			n.Restart()
			for range 20 {
				goesOn(t, c, "another")
			}
			n.Kill()
			if err := os.RemoveAll(data); err != nil {
				t.Fatal(err)
			}
			if older {
				if err := os.CopyFS(data, os.DirFS(backup)); err != nil {
					t.Fatal(err)
				}
			}
			n.Restart()
			gone(t, l)
			goesOn(t, c, "lock") // where its session of before is known, that one must end first
		})
	}
}
