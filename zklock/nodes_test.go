package zklock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/interlock-go/interlock/driver"
)

func sorted(names []string) []string { return slices.Sorted(slices.Values(names)) }

func TestFreeLock_LeavesNoNode(t *testing.T) {
	n := sharedServer(t)
	a, root := newAdmin(t, n.Addr()), freshRoot()
	for _, plain := range []bool{false, true} { // a server before 3.5 leaves it to the driver
		d := open(t, []string{n.Addr()}, &Options{Root: root})
		d.mu.Lock()
		d.plain = plain
		d.mu.Unlock()
		for i := range 3 {
			r := request(fmt.Sprint("a/b ", i))
			take(t, d, r)
			give(t, d, r)
		}
		soon(t, "the nodes of free locks to vanish", func() bool { return len(a.nodes(root+"/mutex")) == 0 })
	}
}

// Containers vanish while they are used: a lock that is taken at that moment makes its node again.
func TestVanishingContainers_DisturbNobody(t *testing.T) {
	n := sharedServer(t)
	root := freshRoot()
	var all sync.WaitGroup
	for range 4 {
		d := open(t, []string{n.Addr()}, &Options{Root: root})
		d.mu.Lock()
		d.plain = true // so that the driver itself removes the node after each release, which the next one makes again
		d.mu.Unlock()
		all.Go(func() {
			for range 50 {
				r := request("lock")
				take(t, d, r)
				give(t, d, r)
			}
		})
	}
	all.Wait()
}

// The servers count a lock's nodes with 32 bits.
func TestSpentNumbers_BeginAnewWithoutTwoHolders(t *testing.T) {
	n := sharedServer(t)
	root := freshRoot()
	var mu sync.Mutex
	inside, token := 0, uint64(0)
	var all sync.WaitGroup
	for range 3 {
		d := open(t, []string{n.Addr()}, &Options{Root: root})
		d.spentAt = 7
		all.Go(func() {
			for range 25 {
				r := request("lock")
				g := take(t, d, r)
				mu.Lock()
				if inside++; inside > 1 || g.Token <= token {
					t.Errorf("%d are inside; token %d after %d", inside, g.Token, token)
				}
				token = g.Token
				inside--
				mu.Unlock()
				give(t, d, r)
			}
		})
	}
	all.Wait()
}

// A token has 63 bits, and a transaction's number could have more if an ensemble has had very many leaders.
func TestTransactionWithoutAToken_IsRefused(t *testing.T) {
	n := sharedServer(t)
	a, root := newAdmin(t, n.Addr()), freshRoot()
	d := open(t, []string{n.Addr()}, &Options{Root: root})
	d.zxidEnd = 1
	if _, err := d.Acquire(bounded(t), request("lock")); !errors.Is(err, driver.ErrUnsupported) ||
		!driver.IsDefinite(err) {
		t.Errorf("Acquire says %v", err)
	}
	if names := a.nodes(root + "/mutex/lock"); len(names) > 0 {
		t.Errorf("it has left %v", names)
	}
}

func TestNodeRemovedByAnOperator_IsALoss(t *testing.T) {
	n := sharedServer(t)
	a, root := newAdmin(t, n.Addr()), freshRoot()
	d := open(t, []string{n.Addr()}, &Options{Root: root})
	for _, how := range []struct {
		name string
		end  func(path string) error
	}{
		{"deleted", func(path string) error { return a.Delete(path, -1) }},
		{"written to", func(path string) error {
			_, err := a.Set(path, nil, -1)
			return err
		}},
	} {
		r := request(how.name)
		lost := make(chan driver.LostReason, 1)
		r.Lost = func(reason driver.LostReason, _ error) { lost <- reason }
		take(t, d, r)
		lock := root + "/mutex/" + encode(how.name)
		if err := how.end(lock + "/" + a.nodes(lock)[0]); err != nil {
			t.Fatal(err)
		}
		if reason := receive(t, "the loss of a hold whose node was "+how.name, lost); reason != driver.LostBroken {
			t.Errorf("%s: the reason is %s", how.name, reason)
		}
		soon(t, "the node to be gone", func() bool { return len(a.nodes(lock)) == 0 })
		if err := d.Release(bounded(t), release(r)); !errors.Is(err, driver.ErrLost) {
			t.Errorf("%s: release: %v", how.name, err)
		}
	}
}

func TestSessionNodeRemovedByAnOperator_IsMadeAgain(t *testing.T) {
	n := sharedServer(t)
	a, root := newAdmin(t, n.Addr()), freshRoot()
	d := open(t, []string{n.Addr()}, &Options{Root: root})
	for range 2 {
		for _, name := range a.nodes(root + "/sessions") {
			if err := a.Delete(root+"/sessions/"+name, -1); err != nil {
				t.Fatal(err)
			}
		}
		r := request("lock")
		take(t, d, r)
		give(t, d, r)
	}
}

// What does not belong to locks is ignored.
func TestForeignNodes_AreNobodysLocks(t *testing.T) {
	n := sharedServer(t)
	a, root := newAdmin(t, n.Addr()), freshRoot()
	d := open(t, []string{n.Addr()}, &Options{Root: root})
	r := request("lock")
	take(t, d, r)
	for _, path := range []string{"/mutex/not%ours", "/mutex/lock/note", "/other"} {
		if _, err := a.Create(root+path, nil, 0, zk.WorldACL(zk.PermAll)); err != nil {
			t.Fatal(err)
		}
	}
	w := queue(t, d, request("lock"))
	found := 0
	for info, err := range d.Locks(bounded(t), "") {
		if err != nil {
			t.Fatal(err)
		}
		found++
		if info.Name != "lock" || len(info.Holders) != 1 || len(info.Waiters) != 1 {
			t.Errorf("listed: %+v", info)
		}
	}
	if found != 1 {
		t.Errorf("%d locks are listed", found)
	}
	give(t, d, r)
	w.granted(t, "the holder has left")
	give(t, d, w.r)
}

// Who stands behind a waiter that leaves has another one before him then, and not the lock.
func TestWaiterBehindOneThatLeaves_WaitsOn(t *testing.T) {
	n := sharedServer(t)
	d := open(t, []string{n.Addr()}, &Options{Root: freshRoot()})
	r := request("lock")
	take(t, d, r)
	leaves := queue(t, d, request("lock"))
	behind := queue(t, d, request("lock"))
	if err := d.Release(bounded(t), &driver.Release{Key: leaves.r.Key, ID: leaves.r.ID, Undo: true}); err != nil {
		t.Fatal(err)
	}
	if got := receive(t, "the wait that was undone to end", leaves.done); !errors.Is(got.err, driver.ErrLost) {
		t.Errorf("a wait that was undone says %v", got.err)
	}
	receive(t, "who waited behind it to be told of the holder", behind.queued)
	select {
	case got := <-behind.done:
		t.Fatalf("it was let in beside the holder: %+v", got)
	case <-time.After(50 * time.Millisecond):
	}
	give(t, d, r)
	behind.granted(t, "the holder has left")
	give(t, d, behind.r)
}

// A wait that is given up, in whatever way, leaves the queue.
func TestCancelledWait_LeavesTheQueueWhenUndone(t *testing.T) {
	n := sharedServer(t)
	a, root := newAdmin(t, n.Addr()), freshRoot()
	d := open(t, []string{n.Addr()}, &Options{Root: root})
	r := request("lock")
	take(t, d, r)
	ctx, cancel := context.WithCancel(context.Background())
	w := begin(ctx, d, request("lock"))
	receive(t, "the wait to be queued", w.queued)
	cancel()
	if got := receive(t, "the wait to end", w.done); !errors.Is(got.err, context.Canceled) {
		t.Errorf("a cancelled wait says %v", got.err)
	}
	if err := d.Release(bounded(t), &driver.Release{Key: w.r.Key, ID: w.r.ID, Undo: true}); err != nil {
		t.Fatal(err)
	}
	if names := a.nodes(root + "/mutex/lock"); len(names) != 1 {
		t.Errorf("the queue is %v, want the holder alone", names)
	}
	give(t, d, r)
}
