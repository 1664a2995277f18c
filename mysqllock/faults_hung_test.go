package mysqllock

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/internal/locktest"
	"github.com/interlock-go/interlock/internal/servers"
)

const (
	// hungTime is how long everybody is ready to wait for a server that hangs, and hungSlack by how much that may be
	// exceeded.
	hungTime, hungSlack = 200 * time.Millisecond, 50 * time.Millisecond

	// hungTries is how often it is measured until a measurement is good: the machine may be busy.
	hungTries = 4
)

// promptly fails unless call returns in time at least once.
func promptly(t *testing.T, what string, call func(ctx context.Context) error) {
	t.Helper()
	var took time.Duration
	for range hungTries {
		ctx, cancel := context.WithTimeout(context.Background(), hungTime)
		begin := time.Now()
		err := call(ctx)
		took = time.Since(begin)
		cancel()
		if took >= hungTime+hungSlack {
			continue
		}
		if !errors.Is(err, interlock.ErrUnavailable) || errors.Is(err, interlock.ErrHeld) {
			t.Errorf("%s: with the server hanging it says %v, want that the outcome is unknown", what, err)
		}
		return
	}
	t.Errorf("%s: with the server hanging it took %v, and was given %v", what, took, hungTime)
}

func TestHungServer_KeepsNobodyLongerThanHisContext(t *testing.T) {
	n := servers.MariaDBServer(t, nil)
	watch := locktest.NewNews()
	c := openLocks(t, urlOf(n.Addr()), &interlock.Options{CloseTimeout: hungTime, Observer: watch.Observer()})
	other := openLocks(t, urlOf(n.Addr()), nil)
	var held []*interlock.Lease
	for i := range hungTries {
		held = append(held, mustLock(t, c, fmt.Sprint("held ", i)))
	}
	mustUnlock(t, mustLock(t, other, "contended"))
	stand(t, n)
	promptly(t, "Lock", func(ctx context.Context) error {
		_, err := c.Lock(ctx, "free")
		return err
	})
	promptly(t, "TryLock", func(ctx context.Context) error {
		_, err := c.TryLock(ctx, "free")
		return err
	})
	released := 0
	promptly(t, "Unlock", func(ctx context.Context) error {
		released++
		return held[released-1].Unlock(ctx)
	})
	n.Cont()
	mustUnlock(t, mustLock(t, other, "free")) // the cancelled ones are undone
	for _, l := range held[:released] {       // and the release goes on
		mustUnlock(t, mustLock(t, other, l.Name()))
		mustUnlock(t, mustLock(t, c, l.Name()))
	}
}

func TestHungServer_CloseIsBounded(t *testing.T) {
	n := servers.MariaDBServer(t, nil)
	watch := locktest.NewNews()
	c := openLocks(t, urlOf(n.Addr()), &interlock.Options{CloseTimeout: hungTime, Observer: watch.Observer()})
	other := openLocks(t, urlOf(n.Addr()), nil)
	mustLock(t, c, "held")
	mustLock(t, other, "waited for")
	waited := make(chan error, 1)
	go func() { // ends by Close
		_, err := c.Lock(context.Background(), "waited for")
		waited <- err
	}()
	receive(t, "the wait to begin", watch.Queued)
	stand(t, n)
	begin := time.Now()
	err := c.Close()
	if took := time.Since(begin); took > hungTime+time.Second+6*time.Second { // the machine may stand still
		t.Errorf("Close took %v", took)
	}
	t.Logf("Close says %v", err)
	if err := receive(t, "the wait to end", waited); !errors.Is(err, interlock.ErrClosed) {
		t.Errorf("the wait says %v", err)
	}
	n.Cont()
	mustUnlock(t, mustLock(t, other, "held")) // a second client's wait: it is free when the server has gone on
}

// A release whose reply is lost ends the connection: whatever has happened, the lock is free afterwards.
func TestLostReply_OfARelease_DestroysTheConnection(t *testing.T) {
	n := sharedServer(t)
	a := newAdmin(t, n)
	p := servers.NewProxy(t, n.Addr())
	c := openLocks(t, urlOf(p.Addr()), &interlock.Options{Lease: short})
	other := openLocks(t, urlOf(n.Addr()), nil)
	for _, d := range []servers.Direction{servers.ToServer, servers.ToClient} {
		l := mustLock(t, c, "release")
		session := a.holder("release")
		p.BlackHole(d)
		ctx, cancel := context.WithTimeout(context.Background(), hungTime)
		if err := l.Unlock(ctx); !errors.Is(err, interlock.ErrUnavailable) {
			t.Errorf("Unlock without an answer says %v", err)
		}
		cancel()
		mustUnlock(t, mustLock(t, other, "release"))
		soon(t, "the connection to be given up", func() bool {
			return a.number("SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE ID = "+
				uintText(uint64(session))) == 0
		})
		p.Pass()
		// The server may have ended other connections too, which the client sees only when it uses them.
		soon(t, "the client to lock over a new connection", func() bool {
			l, err := c.Lock(patient(t), "release")
			if errors.Is(err, interlock.ErrUnavailable) {
				return false
			}
			if err != nil {
				t.Fatal(err)
			}
			mustUnlock(t, l)
			return true
		})
	}
}

// An acquisition whose reply is lost is undone: the lock does not stay with nobody.
func TestLostReply_OfAnAcquire_LeavesNoOrphan(t *testing.T) {
	n := sharedServer(t)
	p := servers.NewProxy(t, n.Addr())
	c := openLocks(t, urlOf(p.Addr()), &interlock.Options{Lease: short})
	other := openLocks(t, urlOf(n.Addr()), nil)
	for range 2 {
		mustUnlock(t, mustLock(t, c, "acquire"))
		p.DropReplies()
		ctx, cancel := context.WithTimeout(context.Background(), hungTime)
		if _, err := c.Lock(ctx, "acquire"); !errors.Is(err, interlock.ErrUnavailable) {
			t.Errorf("Lock without an answer says %v", err)
		}
		cancel()
		begin := time.Now()
		mustUnlock(t, mustLock(t, other, "acquire"))
		t.Logf("free after %v", time.Since(begin))
		if took := time.Since(begin); took > 5*short { // that of a session, and some more
			t.Errorf("the lock was free after %v, with sessions of %v", took, short)
		}
		p.Pass()
		p.Reset()
		mustUnlock(t, mustLock(t, c, "acquire"))
	}
}
