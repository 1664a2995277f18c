package zklock

import (
	"errors"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/internal/servers"
)

// retains are options with which a client keeps its locks.
func retains(lease time.Duration) *interlock.Options {
	return &interlock.Options{Lease: lease, Retain: time.Minute}
}

// pair locks and unlocks.
func pair(t testing.TB, c *interlock.Client, name string) *interlock.Lease {
	t.Helper()
	l := mustLock(t, c, name)
	mustUnlock(t, l)
	return l
}

func TestRetain_TakesOverWithoutTheServer_AndGivesWayToATry(t *testing.T) {
	n, root := sharedServer(t), freshRoot()
	c := openLocks(t, urlOf(root, n.Addr()), retains(time.Minute))
	first := pair(t, c, "lock")
	if next := pair(t, c, "lock"); next.Token() != first.Token()+1 {
		t.Errorf("token %d after %d: it was not retained", next.Token(), first.Token())
	}
	other := openLocks(t, urlOf(root, n.Addr()), leased(time.Minute))
	var l *interlock.Lease
	// A try asks for the lock and waits for 50 ms at most: on a busy machine the first may be refused.
	soon(t, "a try to get what is merely retained", func() (got bool) {
		var err error
		l, err = other.TryLock(bounded(t), "lock")
		if err != nil && !errors.Is(err, interlock.ErrHeld) {
			t.Fatal(err)
		}
		return err == nil
	})
	mustUnlock(t, l)
}

func TestRetain_OverARestart_GivesWay(t *testing.T) {
	t.Parallel()
	n, root := servers.ZooKeeperServer(t, nil), freshRoot()
	url := urlOf(root, n.Addr())
	c, a := openLocks(t, url, retains(time.Minute)), newAdmin(t, n.Addr())
	first := pair(t, c, "lock")
	soon(t, "the lock to be shown as retained", func() bool { return len(marks(a, root+"/mutex/lock")) == 1 })
	n.Restart()
	if next := pair(t, c, "lock"); next.Token() != first.Token()+1 {
		t.Errorf("token %d after %d: it was not retained over the restart", next.Token(), first.Token())
	}
	began := time.Now()
	l := mustLock(t, openLocks(t, url, leased(time.Minute)), "lock")
	t.Logf("another got in after %v", time.Since(began))
	if l.Token() < first.Token()+passes {
		t.Errorf("token %d after %d", l.Token(), first.Token())
	}
	mustUnlock(t, l)
}

// The price of retention: what the dead retain is free when the servers end their session, and that is not shortened.
func TestRetain_ByAClientThatDies_KeepsOthersOutForItsSession(t *testing.T) {
	t.Parallel()
	n, root := sharedServer(t), freshRoot()
	p := servers.NewProxy(t, n.Addr())
	pair(t, openLocks(t, urlOf(root, p.Addr()), retains(faultLease)), "lock")
	p.Refuse()
	p.Reset()
	late := alarm(2 * faultLease) // servers notice it in steps of a tick
	w := startLock(t, urlOf(root, n.Addr()), leased(time.Minute), "lock")
	w.stillWaits("while the session of the dead lasts")
	got := w.granted("after the session of the dead")
	select {
	case <-late:
		t.Error("it took longer than the session")
	default:
	}
	mustUnlock(t, got.l)
}
