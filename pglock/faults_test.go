package pglock

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/drivertest"
	"github.com/interlock-go/interlock/enginekit/sqlsession"
	"github.com/interlock-go/interlock/internal/servers"
)

// What the library makes of a server and a network that fail.

const (
	// timeout is that of sessions that are to end. It is longer than a loaded machine lets a process stand still, with
	// the third after which a sign of life is given.
	timeout = 3 * time.Second

	// calm is that of sessions that are not.
	calm = 30 * time.Second
)

func TestHolder_WhoseSessionIsTerminated_IsToldAtOnce(t *testing.T) {
	n := sharedServer(t)
	table := ownTable()
	a, b := client(t, n.Addr(), "&table="+table, 30*time.Second), client(t, n.Addr(), "&table="+table, 30*time.Second)
	ops := newAdmin(t, n)
	l := lock(t, a, "x")
	ops.query("SELECT pg_terminate_backend(pid) FROM %s WHERE name = 'x'", table)
	lost := isLost(t, l, 5*time.Second)
	if lost.Reason != "session" {
		t.Errorf("the reason is %q, want session: %v", lost.Reason, lost)
	}
	next := lock(t, b, "x")
	if next.Token() <= l.Token() {
		t.Errorf("the next token is %d, want more than %d", next.Token(), l.Token())
	}
	if err := l.Unlock(t.Context()); !errors.Is(err, interlock.ErrLost) {
		t.Errorf("unlock of a lost hold says %v", err)
	}
	unlock(t, next)
	unlock(t, lock(t, a, "x")) // the client goes on with another session
}

func TestWaiter_WhoseSessionIsTerminated_WaitsOn(t *testing.T) {
	n := sharedServer(t)
	table := ownTable()
	a, b := client(t, n.Addr(), "&table="+table, 30*time.Second), client(t, n.Addr(), "&table="+table, 30*time.Second)
	ops := newAdmin(t, n)
	l := lock(t, a, "x")
	got := make(chan error, 1)
	go func() { // ends when the lock is released, or with the test's context
		next, err := b.Lock(t.Context(), "x")
		if err == nil {
			err = next.Unlock(t.Context())
		}
		got <- err
	}()
	waiting := fmt.Sprintf("SELECT count(*) FROM pg_locks l JOIN %s_waits w USING (pid) WHERE l.locktype = "+
		"'advisory' AND NOT l.granted", table)
	until(t, patience, func() error { return want(ops.one("%s", waiting), "1") })
	first := ops.one("SELECT pid FROM %s_waits", table)
	ops.query("SELECT pg_terminate_backend(%s)", first)
	until(t, patience, func() error {
		return want(ops.one("%s AND pid <> %s", waiting, first), "1")
	})
	unlock(t, l)
	if err := <-got; err != nil {
		t.Error(err)
	}
}

func TestServer_ThatStartsAgain_EndsHoldsAndTokensGoOn(t *testing.T) {
	n := servers.PostgresServer(t, nil)
	a := client(t, n.Addr(), "", calm)
	l := lock(t, a, "x")
	n.Kill()
	isLost(t, l, 5*time.Second)
	n.Restart()
	var next *interlock.Lease
	until(t, patience, func() (err error) {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		next, err = a.Lock(ctx, "x")
		return err
	})
	if next.Token() <= l.Token() {
		t.Errorf("after the restart the token is %d, want more than %d", next.Token(), l.Token())
	}
	unlock(t, next)
}

func TestServer_ThatHangs_HoldersAreToldWithinTheTimeout(t *testing.T) {
	n := servers.PostgresServer(t, nil)
	a, b := client(t, n.Addr(), "", timeout), client(t, n.Addr(), "", timeout)
	l := lock(t, a, "x")
	over := make(chan time.Time, 1)
	time.AfterFunc(timeout, func() { over <- time.Now() }) // is late as well if the machine stands still
	n.Stop()
	isLost(t, l, patience)
	told := time.Now()
	if late := told.Sub(<-over); late > time.Second {
		t.Errorf("the holder was told %v after the timeout", late)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := b.Lock(ctx, "y"); !errors.Is(err, interlock.ErrUnavailable) ||
		!errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a lock that nobody answers for says %v, want unavailable and the context's error", err)
	}
	n.Cont()
	unlock(t, lock(t, b, "x"))
	unlock(t, lock(t, a, "y"))
}

func TestClient_ThatVanishes_FreesItsLockWithinTheTimeout(t *testing.T) {
	n := sharedServer(t)
	table := ownTable()
	p := servers.NewProxy(t, n.Addr())
	a, b := client(t, p.Addr(), "&table="+table, timeout), client(t, n.Addr(), "&table="+table, calm)
	l := lock(t, a, "x")
	p.BlackHole(servers.BothWays)
	begin := time.Now()
	next := lock(t, b, "x")
	if l.Err() == nil {
		t.Error("another has the lock, and its old holder has not been told")
	}
	if took := time.Since(begin); took > 4*timeout {
		t.Errorf("the lock was free after %v, with a timeout of %v", took, timeout)
	}
	unlock(t, next)
	p.Pass()
}

func TestUnlock_WhoseReplyIsLost_EndsInTheBackground(t *testing.T) {
	n := sharedServer(t)
	table := ownTable()
	p := servers.NewProxy(t, n.Addr())
	a, b := client(t, p.Addr(), "&table="+table, timeout), client(t, n.Addr(), "&table="+table, calm)
	var held []*interlock.Lease // one for each attempt to measure, because the machine may stand still
	for i := range 4 {
		held = append(held, lock(t, a, fmt.Sprint("x", i)))
	}
	p.DropReplies()
	var took time.Duration
	for i, l := range held {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		begin := time.Now()
		err := l.Unlock(ctx)
		took = time.Since(begin)
		cancel()
		if took > 500*time.Millisecond {
			continue
		}
		if !errors.Is(err, interlock.ErrUnavailable) {
			t.Errorf("an unlock without an answer says %v, want unavailable", err)
		}
		held = held[:i+1]
		break
	}
	if took > 500*time.Millisecond {
		t.Errorf("again and again it returned late, at last after %v, with a limit of 100 ms", took)
	}
	for _, l := range held {
		unlock(t, lock(t, b, l.Name()))
	}
	p.Pass()
	unlock(t, lock(t, a, "x0")) // over new connections
}

// A release that was carried out is no loss, however late it turns out that its reply will not come.
func TestUnlock_WhoseReplyIsLost_IsNoLoss(t *testing.T) {
	n := sharedServer(t)
	table, ops := ownTable(), newAdmin(t, n)
	p := servers.NewProxy(t, n.Addr())
	a := client(t, p.Addr(), "&table="+table, timeout)
	l := lock(t, a, "x")
	p.DropReplies()
	said := make(chan error, 1)
	go func() { said <- l.Unlock(t.Context()) }() // ends with the connection, after the timeout
	until(t, patience, func() error {
		return want(ops.one("SELECT count(*) FROM pg_locks l JOIN %s t ON l.pid = t.pid AND t.name = 'x' "+
			"WHERE l.locktype = 'advisory'", table), "0")
	})
	p.Pass() // for new connections; the old one stays mute
	if err := <-said; err != nil {
		t.Errorf("the server has the lock back, and Unlock says %v", err)
	}
}

func TestLock_WhoseReplyIsLost_LeavesNothing(t *testing.T) {
	n := sharedServer(t)
	table := ownTable()
	p := servers.NewProxy(t, n.Addr())
	a, b := client(t, p.Addr(), "&table="+table, timeout), client(t, n.Addr(), "&table="+table, calm)
	unlock(t, lock(t, a, "x"))
	p.DropReplies()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := a.Lock(ctx, "x"); !errors.Is(err, interlock.ErrUnavailable) {
		t.Errorf("a lock without an answer says %v, want unavailable", err)
	}
	p.Pass()
	unlock(t, lock(t, b, "x"))
}

func TestConnections_ThatAreReset_EndHoldsAtOnceAndFreeTheLock(t *testing.T) {
	n := sharedServer(t)
	table := ownTable()
	p := servers.NewProxy(t, n.Addr())
	a, b := client(t, p.Addr(), "&table="+table, 30*time.Second), client(t, n.Addr(), "&table="+table, 30*time.Second)
	l := lock(t, a, "x")
	p.Reset()
	isLost(t, l, 5*time.Second)
	unlock(t, lock(t, b, "x"))
}

// A connection that was cut off while nobody looked has not been asked, and another is asked instead.
func TestAcquire_OverASessionThatWasCutOff_AsksAnother(t *testing.T) {
	n := sharedServer(t)
	p := servers.NewProxy(t, n.Addr())
	d := open(t.Context(), t, p.Addr(), Options{Table: ownTable(), Shared: 1})
	defer func() { _ = d.Close() }()
	busy, goOn := make(chan struct{}), make(chan struct{})
	d.core.OnShared(sqlsession.Job{
		Run:  func(*sqlsession.Conn) { close(busy); <-goOn },
		Dead: func(err error) { t.Error(err) },
	})
	<-busy
	ctx, waits := drivertest.Awaited(t.Context())
	got := make(chan error, 1)
	r := request("x", "1")
	go func() { // ends with ctx
		_, err := d.Acquire(ctx, r)
		got <- err
	}()
	<-waits // it stands behind what the session does
	p.Reset()
	close(goOn)
	if err := <-got; err != nil {
		t.Fatal(err)
	}
	release(t, d, r)
}

// One connection of several goes mute. What needs another is not kept waiting for the timeout.
func TestSharedConnection_ThatGoesMute_IsPassedBy(t *testing.T) {
	n := sharedServer(t)
	p := servers.NewProxy(t, n.Addr())
	d := open(t.Context(), t, p.Addr(), Options{Table: ownTable(), Timeout: 20 * time.Second})
	defer func() { _ = d.Close() }()
	p.DropReplies()
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	lost := request("x", "1")
	if _, err := d.Acquire(ctx, lost); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("without an answer an acquire says %v", err)
	}
	p.Pass() // the old connection stays mute
	begin := time.Now()
	until(t, patience, func() error {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		r := request("y", fmt.Sprint(time.Since(begin)))
		_, err := d.Acquire(ctx, r)
		if err != nil { // as the library does
			undone, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
			defer cancel()
			_ = d.Release(undone, &driver.Release{Key: r.Key, ID: r.ID, Undo: true, Horizon: time.Minute})
		}
		return err
	})
	// and not by the timeout, which is longer than the patience
	t.Logf("another lock was got after %v", time.Since(begin))
}
