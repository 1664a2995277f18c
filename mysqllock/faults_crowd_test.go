package mysqllock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/locktest"
	"github.com/interlock-go/interlock/internal/servers"
)

// crowd is how many clients wait for one lock, as many processes would.
const crowd = 120

// A release wakes one waiter, so a crowd costs each of its members the same few statements however large it is.
func TestCrowd_IsServedOneByOne_WithAFewStatementsEach(t *testing.T) {
	n := sharedServer(t)
	a := newAdmin(t, n)
	watch, in := locktest.NewNews(), locktest.NewInside(t, "crowd")
	// so that signs of life are no part of what is counted
	o := &interlock.Options{Observer: watch.Observer(), Lease: time.Hour}
	holds := openLocks(t, urlOf(n.Addr()), &interlock.Options{Lease: time.Hour})
	held := mustLock(t, holds, "crowd")
	in.Enter(held)
	var all sync.WaitGroup
	for range crowd {
		c := openLocks(t, urlOf(n.Addr()), o)
		all.Go(func() {
			l, err := c.Lock(context.Background(), "crowd")
			if err != nil {
				t.Errorf("one of the crowd: %v", err)
				return
			}
			in.Enter(l)
			if err := l.Unlock(context.Background()); err != nil {
				t.Errorf("one of the crowd: %v", err)
			}
		})
		receive(t, "a wait to begin", watch.Queued)
	}
	soon(t, "all to wait in the server", func() bool { return a.waiting() == crowd })
	before := a.number("SELECT VARIABLE_VALUE FROM information_schema.GLOBAL_STATUS WHERE VARIABLE_NAME = 'QUESTIONS'")
	begin := time.Now()
	mustUnlock(t, held)
	all.Wait()
	took := time.Since(begin)
	after := a.number("SELECT VARIABLE_VALUE FROM information_schema.GLOBAL_STATUS WHERE VARIABLE_NAME = 'QUESTIONS'")
	each := float64(after-before) / crowd
	t.Logf("%d waiters were served in %v, with %.1f statements each", crowd, took, each)
	if in.Entries() != crowd+1 {
		t.Errorf("%d were inside, want %d", in.Entries(), crowd+1)
	}
	// The token and the release, their preparation on a new connection, and looks who is in the way.
	if each > 6 {
		t.Errorf("%.1f statements for each waiter", each)
	}
}

// Thousands of holds that nobody contends for share a few connections.
func TestManyHolds_ShareConnections(t *testing.T) {
	n := sharedServer(t)
	a := newAdmin(t, n)
	before := len(a.connections())
	c := openLocks(t, urlOf(n.Addr())+"?shared=3", nil)
	const many = 3000
	leases := make([]*interlock.Lease, many)
	var all sync.WaitGroup
	for w := range 8 {
		all.Go(func() {
			for i := w; i < many; i += 8 {
				l, err := c.Lock(context.Background(), fmt.Sprint("many ", i))
				if err != nil {
					t.Errorf("Lock: %v", err)
					return
				}
				leases[i] = l
			}
		})
	}
	all.Wait()
	if t.Failed() {
		return
	}
	// Of three. One that has not answered for two seconds, in which the machine may stand still, has a successor.
	if used := len(a.connections()) - before; used > 6 {
		t.Errorf("%d holds use %d connections, want 6 at most", many, used)
	}
	for _, i := range []int{0, 1, many / 2, many - 1} {
		if a.holder(fmt.Sprint("many ", i)) == 0 {
			t.Errorf("the server does not know hold %d", i)
		}
	}
	for _, l := range leases {
		mustUnlock(t, l)
	}
}

// Close ends waits in the server as well, gives back what is held, and leaves no goroutine and no connection.
func TestClose_WithWaitersAndHolds_LeavesNothing(t *testing.T) {
	n := sharedServer(t)
	a, watch := newAdmin(t, n), locktest.NewNews()
	connected := len(a.connections())
	before := ourStacks()
	holds := openLocks(t, urlOf(n.Addr()), nil)
	waits := openLocks(t, urlOf(n.Addr())+"?waits=8", &interlock.Options{Observer: watch.Observer()})
	const some = 12 // more than wait in the server
	ended := make(chan error, some)
	for i := range some {
		name := fmt.Sprint("close ", i)
		mustLock(t, holds, name)
		go func() { // ends by Close
			_, err := waits.Lock(context.Background(), name)
			ended <- err
		}()
		receive(t, "a wait to begin", watch.Queued)
		mustLock(t, waits, fmt.Sprint("own ", i))
	}
	for _, c := range []*interlock.Client{waits, holds} {
		begin := time.Now()
		if err := c.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
		// it is little more than a second unless the machine stands still
		if took := time.Since(begin); took > 10*time.Second {
			t.Errorf("Close took %v", took)
		}
	}
	for range some {
		if err := receive(t, "a wait to end", ended); !errors.Is(err, interlock.ErrClosed) {
			t.Errorf("a wait says %v", err)
		}
	}
	soon(t, "all goroutines to end", func() bool { return len(newStacks(before)) == 0 })
	soon(t, "all connections to end", func() bool { return len(a.connections()) <= connected })
	for i := range some {
		if a.holder(fmt.Sprint("close ", i)) != 0 || a.holder(fmt.Sprint("own ", i)) != 0 {
			t.Errorf("after Close lock %d is held", i)
		}
	}
}

// A server that is full lets waits go on over the connections that there are.
func TestFullServer_WaitsAskAgainInstead(t *testing.T) {
	n := servers.MariaDBServer(t, &servers.MariaDBOptions{SQL: []string{
		"CREATE USER few@'%' WITH MAX_USER_CONNECTIONS 1;", "GRANT ALL ON " + servers.MariaDBDatabase +
			".* TO few@'%';",
	}})
	watch := locktest.NewNews()
	c := openLocks(t, "mysql://few@"+n.Addr()+"/"+servers.MariaDBDatabase,
		&interlock.Options{Observer: watch.Observer()})
	holds := openLocks(t, urlOf(n.Addr()), nil)
	for range 3 {
		held := mustLock(t, holds, "full")
		in := make(chan error, 1)
		go func() { // ends with the wait
			l, err := c.Lock(context.Background(), "full")
			if err == nil {
				err = l.Unlock(context.Background())
			}
			in <- err
		}()
		receive(t, "the wait to begin", watch.Queued)
		mustUnlock(t, held)
		if err := receive(t, "the waiter to get in", in); err != nil {
			t.Error(err)
		}
	}
}

// Break ends one hold and leaves the others of the same connection.
func TestBreak_LeavesTheOtherHoldsOfTheConnection(t *testing.T) {
	n := sharedServer(t)
	watch := locktest.NewNews()
	c := openLocks(t, urlOf(n.Addr())+"?shared=1", &interlock.Options{Observer: watch.Observer()})
	operator := openLocks(t, urlOf(n.Addr()), nil)
	broken, kept := mustLock(t, c, "broken"), mustLock(t, c, "kept")
	begin := time.Now()
	if err := operator.Break(patient(t), driver.KindMutex, "broken", broken.Token()); err != nil {
		t.Fatal(err)
	}
	t.Logf("Break took %v", time.Since(begin))
	wantLost(t, watch, broken, "broken")
	if err := kept.Err(); err != nil {
		t.Errorf("the other hold: %v", err)
	}
	mustUnlock(t, mustLock(t, operator, "broken"))
	mustUnlock(t, kept)
	a := newAdmin(t, n)
	row := fmt.Sprintf("SELECT COUNT(*) FROM %s_breaks WHERE id = x'%s'", tokenTable,
		idOf(servers.MariaDBDatabase+".interlock", mutex("broken")).hex())
	soon(t, "the break to be taken away", func() bool { return a.number(row) == 0 })
}

// Break of a hold whose client has vanished without a word returns when the server ends the session.
func TestBreak_OfADeadHolder_ReturnsWhenItsSessionEnds(t *testing.T) {
	n := sharedServer(t)
	p := servers.NewProxy(t, n.Addr())
	c := openLocks(t, urlOf(p.Addr()), &interlock.Options{Lease: short})
	operator := openLocks(t, urlOf(n.Addr()), nil)
	l := mustLock(t, c, "dead")
	p.BlackHole(servers.BothWays)
	if err := operator.Break(patient(t), driver.KindMutex, "dead", l.Token()); err != nil {
		t.Fatal(err)
	}
	if l.Err() == nil {
		t.Error("Break has returned, and the holder trusts its hold")
	}
	mustUnlock(t, mustLock(t, operator, "dead"))
	p.Pass()
}
