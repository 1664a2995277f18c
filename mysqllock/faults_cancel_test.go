package mysqllock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/enginekit/sqlsession"
	"github.com/interlock-go/interlock/internal/locktest"
	"github.com/interlock-go/interlock/internal/servers"
)

const (
	// cancels is how many acquisitions are cancelled, and cancelBound how soon the lock must be free then: as a rule,
	// since the machine may stand still, but never is it the session's end that frees it.
	cancels     = 40
	cancelBound = time.Second
)

func TestCancel_AtAnyMoment_LeavesTheLockFree(t *testing.T) {
	uncontended, contended := (*locktest.Canceller).Uncontended, (*locktest.Canceller).Contended
	t.Run("Uncontended", func(t *testing.T) { cancelled(t, 0, uncontended) })
	t.Run("Contended", func(t *testing.T) { cancelled(t, 0, contended) })
	t.Run("Uncontended_OverASlowNetwork", func(t *testing.T) { cancelled(t, 3*time.Millisecond, uncontended) })
	t.Run("Contended_OverASlowNetwork", func(t *testing.T) { cancelled(t, 3*time.Millisecond, contended) })
}

func cancelled(t *testing.T, delay time.Duration, once func(c *locktest.Canceller, t testing.TB, name string)) {
	n := sharedServer(t)
	p := servers.NewProxy(t, n.Addr())
	c := &locktest.Canceller{Rand: newRand(t), Watch: locktest.NewNews()}
	c.Asks = openLocks(t, urlOf(p.Addr()), &interlock.Options{Observer: c.Watch.Observer()})
	c.Holds, c.Tries = openLocks(t, urlOf(n.Addr()), nil), openLocks(t, urlOf(n.Addr()), nil)
	c.Late = func(began time.Time) bool { return time.Since(began) > faultsPatience } // of a lease of 30 s
	p.Delay(servers.BothWays, delay)
	c.Measure(t, 30*time.Millisecond)
	var free []time.Duration
	for i := range cancels {
		name := fmt.Sprint(t.Name(), i)
		once(c, t, name)
		free = append(free, c.FreeAfter(t, name))
	}
	slices.Sort(free)
	t.Logf("free after: median %v, worst %v", free[cancels/2], free[cancels-1])
	if free[cancels/2] > cancelBound {
		t.Errorf("half of the locks were free only %v after a cancelled Lock had returned", free[cancels/2])
	}
	a := newAdmin(t, n)
	soon(t, "no wait to be left in the server", func() bool { return a.waiting() == 0 })
}

// A cancelled wait returns at once, and the server forgets it although the holder stays.
func TestCancel_ReturnsAtOnce_AndNothingStaysQueued(t *testing.T) {
	n := sharedServer(t)
	a, watch := newAdmin(t, n), locktest.NewNews()
	holds := openLocks(t, urlOf(n.Addr()), nil)
	asks := openLocks(t, urlOf(n.Addr()), &interlock.Options{Observer: watch.Observer()})
	held := mustLock(t, holds, "kept")
	var times []time.Duration
	for range 30 {
		ctx, cancel := context.WithCancel(context.Background())
		returned := make(chan error, 1)
		go func() { // ends with ctx
			_, err := asks.Lock(ctx, "kept")
			returned <- err
		}()
		receive(t, "the wait to begin", watch.Queued)
		soon(t, "the wait to be in the server", func() bool { return a.waiting() == 1 })
		begin := time.Now()
		cancel()
		err := receive(t, "Lock to return", returned)
		times = append(times, time.Since(begin))
		var told *interlock.HeldError
		if !errors.As(err, &told) || !errors.Is(err, context.Canceled) {
			t.Fatalf("a cancelled wait says %v", err)
		}
		soon(t, "the wait to be gone from the server", func() bool { return a.waiting() == 0 })
	}
	slices.Sort(times)
	t.Logf("returned after: median %v, worst %v", times[len(times)/2], times[len(times)-1])
	if times[len(times)/2] > 200*time.Millisecond {
		t.Errorf("half of the cancelled waits took longer than %v", times[len(times)/2])
	}
	mustUnlock(t, held)
}

// A server that has started anew gives out its numbers again, and a wait may be cancelled then whose session ended with
// the old server: the statement that runs under its number is another program's.
func TestInterrupt_OfASessionThatIsGone_EndsNoOtherStatement(t *testing.T) {
	n := sharedServer(t)
	a, busy := newAdmin(t, n), newAdmin(t, n)
	id := busy.number("SELECT CONNECTION_ID()")
	d := open(context.Background(), t, n.Addr(), Options{Shared: 1})
	defer d.Close()
	ended := make(chan error, 1)
	go func() { // ends with the interruption, which SLEEP tells by 1
		interrupted := 0
		err := busy.db.QueryRowContext(patient(t), "SELECT SLEEP(60)").Scan(&interrupted)
		if err == nil && interrupted == 0 {
			err = errors.New("the statement slept to its end")
		}
		ended <- err
	}()
	running := fmt.Sprintf(
		"SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE ID = %d AND STATE = 'User sleep'", id)
	soon(t, "the other program's statement to run", func() bool { return a.number(running) == 1 })
	gone := &speaker{d: d, id: uint64(id), mark: markPrefix + "of-the-server-before"}
	gone.c = d.core.NewConn(nil, true, gone)
	for what, ask := range map[string]func(shared *sqlsession.Conn){
		"Interrupt": func(shared *sqlsession.Conn) {
			if err := session(shared).Interrupt(gone.c); err != nil {
				t.Error(err)
			}
		},
		"Bury": func(shared *sqlsession.Conn) {
			if !session(shared).Bury(gone.c) {
				t.Error("a session that is gone counts as there")
			}
		},
	} {
		done := make(chan error, 1)
		d.core.OnShared(sqlsession.Job{
			Run: func(shared *sqlsession.Conn) { ask(shared); done <- nil }, Dead: func(err error) { done <- err },
		})
		if err := receive(t, what, done); err != nil {
			t.Fatal(err)
		}
		if a.number(running) != 1 {
			t.Errorf("%s has ended the statement of another program", what)
		}
	}
	a.exec(fmt.Sprint("KILL QUERY ", id))
	_ = receive(t, "the statement's end", ended)
}
