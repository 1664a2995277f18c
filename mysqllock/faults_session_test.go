package mysqllock

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/enginekit/sqlsession"
	"github.com/interlock-go/interlock/internal/locktest"
	"github.com/interlock-go/interlock/internal/servers"
)

// short is the lease of tests that wait for its end. It is longer than a loaded machine lets a process stand still,
// with the third after which a sign of life is given.
const short = 3 * time.Second

// atOnce is how soon is told what is not found by a sign of life: of a lease of 30 s they are ten apart.
const atOnce = 7 * time.Second

// wantLost fails unless a loss comes for the reason.
func wantLost(t *testing.T, watch *locktest.News, l *interlock.Lease, reason interlock.LostReason) {
	t.Helper()
	receive(t, "the holder to be told", l.Lost())
	if lost := receive(t, "the observer to be told", watch.Lost); lost.Reason != reason || lost.Token != l.Token() {
		t.Errorf("lost is %+v, want reason %q and token %d", lost, reason, l.Token())
	}
	if err := l.Unlock(patient(t)); !errors.Is(err, interlock.ErrLost) {
		t.Errorf("Unlock of the lost hold says %v", err)
	}
}

func TestKill_OfTheHoldersConnection_IsToldAtOnceAndLeavesTheClientUsable(t *testing.T) {
	n := sharedServer(t)
	a, watch := newAdmin(t, n), locktest.NewNews()
	c := openLocks(t, urlOf(n.Addr()), &interlock.Options{Observer: watch.Observer()})
	l := mustLock(t, c, "killed")
	begin := time.Now()
	a.exec(fmt.Sprint("KILL ", a.holder("killed")))
	wantLost(t, watch, l, "session")
	if took := time.Since(begin); took > atOnce {
		t.Errorf("it took %v until the holder knew", took)
	}
	next := mustLock(t, c, "killed")
	if next.Token() <= l.Token() {
		t.Errorf("token %d after %d", next.Token(), l.Token())
	}
	mustUnlock(t, next)
}

// Holds share connections, but only those of the connection that ends are lost. Waiters are on their own.
func TestKill_OfOneConnection_LeavesTheOthersAlone(t *testing.T) {
	n := sharedServer(t)
	a, watch := newAdmin(t, n), locktest.NewNews()
	holds := openLocks(t, urlOf(n.Addr()), nil)
	waits := openLocks(t, urlOf(n.Addr()), &interlock.Options{Observer: watch.Observer()})
	first := mustLock(t, holds, "contended")
	in := make(chan *interlock.Lease, 1)
	go func() { // ends with the wait
		l, err := waits.Lock(context.Background(), "contended")
		if err != nil {
			t.Errorf("the waiter: %v", err)
		}
		in <- l
	}()
	receive(t, "the wait to begin", watch.Queued)
	mustUnlock(t, first)
	won := receive(t, "the waiter to get in", in)
	kept := mustLock(t, waits, "alone")
	if a.holder("contended") == a.holder("alone") {
		t.Fatal("a lock that was waited for is held on a shared connection")
	}
	a.exec(fmt.Sprint("KILL ", a.holder("contended")))
	receive(t, "the holder to be told", won.Lost())
	if err := kept.Err(); err != nil {
		t.Errorf("the hold on another connection: %v", err)
	}
	mustUnlock(t, kept)
}

// A waiter whose connection is killed asks again; only its place is lost.
func TestKill_OfAWaitersConnection_DoesNotEndTheWait(t *testing.T) {
	n := sharedServer(t)
	a, watch := newAdmin(t, n), locktest.NewNews()
	holds := openLocks(t, urlOf(n.Addr()), nil)
	waits := openLocks(t, urlOf(n.Addr()), &interlock.Options{Observer: watch.Observer()})
	for _, how := range []string{"KILL", "KILL QUERY"} {
		held := mustLock(t, holds, "waited for")
		in := make(chan error, 1)
		go func() { // ends with the wait
			l, err := waits.Lock(context.Background(), "waited for")
			if err == nil {
				err = l.Unlock(context.Background())
			}
			in <- err
		}()
		receive(t, "the wait to begin", watch.Queued)
		soon(t, "the wait to be in the server", func() bool { return a.waiting() == 1 })
		id := a.number("SELECT ID FROM information_schema.PROCESSLIST WHERE STATE = 'User lock'")
		a.exec(fmt.Sprint(how, " ", id))
		soon(t, "the wait to be in the server again", func() bool { return a.waiting() == 1 })
		mustUnlock(t, held)
		if err := receive(t, "the waiter to get in", in); err != nil {
			t.Errorf("after %s: %v", how, err)
		}
	}
}

func TestServerRestart_HoldersAreTold_AndTokensGoOnGrowing(t *testing.T) {
	n := servers.MariaDBServer(t, nil)
	watch := locktest.NewNews()
	c := openLocks(t, urlOf(n.Addr()), &interlock.Options{Observer: watch.Observer()})
	other := openLocks(t, urlOf(n.Addr()), nil)
	l := mustLock(t, c, "a")
	n.Kill()
	receive(t, "the holder to be told", l.Lost())
	n.Restart()
	next := mustLock(t, other, "a")
	if next.Token() <= l.Token() {
		t.Errorf("token %d after %d", next.Token(), l.Token())
	}
	if err := l.Unlock(patient(t)); !errors.Is(err, interlock.ErrLost) {
		t.Errorf("Unlock of the lost hold says %v", err)
	}
	if _, err := c.TryLock(patient(t), "a"); !errors.Is(err, interlock.ErrHeld) {
		t.Errorf("a try while another holds it says %v", err)
	}
	mustUnlock(t, next)
	mustUnlock(t, mustLock(t, c, "a"))
}

// While the server is away a Lock says so, and when it is back the client goes on.
func TestServerAway_IsUnavailable(t *testing.T) {
	n := servers.MariaDBServer(t, nil)
	c := openLocks(t, urlOf(n.Addr()), nil)
	n.Kill()
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	if _, err := c.Lock(ctx, "a"); !errors.Is(err, interlock.ErrUnavailable) || errors.Is(err, interlock.ErrHeld) {
		t.Errorf("Lock without a server says %v", err)
	}
	n.Restart()
	mustUnlock(t, mustLock(t, c, "a"))
}

// partitioned cuts a holder off, and watches that nobody gets in before it has been told.
func partitioned(
	t *testing.T, cut func(p *servers.Proxy, n *servers.MariaDBNode) (heal func()), n *servers.MariaDBNode,
) {
	p := servers.NewProxy(t, n.Addr())
	watch, in := locktest.NewNews(), locktest.NewInside(t, t.Name())
	c := openLocks(t, urlOf(p.Addr()), &interlock.Options{Lease: short, Observer: watch.Observer()})
	other := openLocks(t, urlOf(n.Addr()), nil)
	for range 2 {
		l := mustLock(t, c, t.Name())
		in.Enter(l)
		begin := time.Now()
		heal := cut(p, n)
		next := mustLock(t, other, t.Name())
		in.Enter(next)
		took := time.Since(begin)
		t.Logf("the next was in after %v", took)
		if took > 5*short {
			t.Errorf("the next was in after %v, with sessions of %v", took, short)
		}
		receive(t, "the holder to be told", l.Lost())
		lost := receive(t, "the observer to be told", watch.Lost)
		t.Logf("lost: %s after %v at most", lost.Reason, time.Since(begin))
		heal()
		mustUnlock(t, next)
		l = mustLock(t, c, t.Name())
		in.Enter(l)
		mustUnlock(t, l)
	}
}

func TestBlackHole_EndsTheHoldAfterItsTimeout_AndNotBeforeTheHolderIsTold(t *testing.T) {
	partitioned(t, func(p *servers.Proxy, _ *servers.MariaDBNode) func() {
		p.BlackHole(servers.BothWays)
		return p.Pass
	}, sharedServer(t))
}

func TestLostReplies_EndTheHoldAfterItsTimeout(t *testing.T) {
	// The server hears the holder's signs of life, so the session goes on until the holder has given the connection up.
	partitioned(t, func(p *servers.Proxy, _ *servers.MariaDBNode) func() {
		p.DropReplies()
		return func() {
			p.Pass()
			p.Reset() // connections that have lost bytes stay mute
		}
	}, sharedServer(t))
}

// A connection that is cut ends the hold in the server at once, and the holder is told as soon as its machine knows:
// for that moment another may be inside, which only a fence can do something about.
func TestReset_EndsTheHoldAtOnce_AndIsToldAtOnce(t *testing.T) {
	n := sharedServer(t)
	p := servers.NewProxy(t, n.Addr())
	watch := locktest.NewNews()
	c := openLocks(t, urlOf(p.Addr()), &interlock.Options{Observer: watch.Observer()})
	other := openLocks(t, urlOf(n.Addr()), nil)
	var worst time.Duration
	for i := range 40 {
		l := mustLock(t, c, "reset")
		// before and after the connection begins to be watched
		<-time.After(time.Duration(i%20) * 500 * time.Microsecond)
		begin := time.Now()
		p.Reset()
		receive(t, "the holder to be told", l.Lost())
		worst = max(worst, time.Since(begin))
		wantLost(t, watch, l, "session")
		mustUnlock(t, mustLock(t, other, "reset"))
	}
	t.Logf("the worst took %v", worst)
	if worst > atOnce {
		t.Errorf("the holder was told %v after the reset", worst)
	}
}

// A server that hangs keeps its locks, so the holder is told by the client alone. When it goes on, nobody is in twice.
func TestHungServer_EndsTheHoldersTrust(t *testing.T) {
	n := servers.MariaDBServer(t, nil)
	watch, in := locktest.NewNews(), locktest.NewInside(t, "hung")
	c := openLocks(t, urlOf(n.Addr()), &interlock.Options{Lease: short, Observer: watch.Observer()})
	other := openLocks(t, urlOf(n.Addr()), &interlock.Options{Lease: short})
	l := mustLock(t, c, "hung")
	in.Enter(l)
	over := make(chan time.Time, 1)
	time.AfterFunc(short, func() { over <- time.Now() }) // is late as well if the machine stands still
	stand(t, n)
	receive(t, "the holder to be told", l.Lost())
	told := time.Now()
	if late := told.Sub(receive(t, "the lease to be over", over)); late > 500*time.Millisecond {
		t.Errorf("the holder was told %v after the end of its lease", late)
	}
	n.Cont()
	for _, who := range []*interlock.Client{other, c} {
		next := mustLock(t, who, "hung")
		in.Enter(next)
		mustUnlock(t, next)
	}
}

// A server that was started again gives the numbers of its sessions again. What is meant for a session of before ends
// nothing of the program that has its number now.
func TestKill_MeantForASessionOfBeforeARestart_HitsNobodyElse(t *testing.T) {
	n := servers.MariaDBServer(t, nil)
	before := newAdmin(t, n)
	before.db.SetMaxIdleConns(0)
	for range 100 { // numbers that the restarted server has not yet given by then
		before.exec("DO 1")
	}
	d := open(patient(t), t, n.Addr(), Options{})
	defer d.Close()
	old, err := dialect{d}.Dial(patient(t), true)
	if err != nil {
		t.Fatal(err)
	}
	n.Kill()
	n.Restart()
	holds := newAdmin(t, n)
	holds.exec("DO GET_LOCK('stranger', 0)")
	stranger := sessionNumbered(t, n, session(old).id)
	got := make(chan error, 1)
	go func() { // ends when the lock is free
		var has sql.NullInt64
		err := stranger.QueryRowContext(context.Background(), "SELECT GET_LOCK('stranger', 60)").Scan(&has)
		if err == nil && has.Int64 != 1 {
			err = fmt.Errorf("its statement was ended: %+v", has)
		}
		got <- err
	}()
	soon(t, "the stranger to wait", func() bool { return holds.waiting() == 1 })
	said := make(chan error, 2)
	d.core.OnShared(sqlsession.Job{
		Run: func(c *sqlsession.Conn) {
			said <- session(c).Interrupt(old)
			if !session(c).Bury(old) {
				said <- errors.New("a session of before the restart is taken for one that lives")
				return
			}
			said <- nil
		},
		Dead: func(err error) { said <- err; said <- err },
	})
	for range 2 {
		if err := receive(t, "the session of before to be ended", said); err != nil {
			t.Error(err)
		}
	}
	holds.exec("DO RELEASE_LOCK('stranger')")
	if err := receive(t, "the stranger's statement to end", got); err != nil {
		t.Error("another program's session: ", err)
	}
}

// sessionNumbered returns a session of another program with the given number, which the server has not yet reached.
func sessionNumbered(t *testing.T, n *servers.MariaDBNode, want uint64) *sql.Conn {
	t.Helper()
	db, err := sql.Open("mysql", configOf(n.Addr()).FormatDSN())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	db.SetMaxIdleConns(0)
	for {
		c, err := db.Conn(patient(t))
		if err != nil {
			t.Fatal(err)
		}
		var id uint64
		if err := c.QueryRowContext(patient(t), "SELECT CONNECTION_ID()").Scan(&id); err != nil || id > want {
			t.Fatalf("the server is at session %d already, and %d is wanted: %v", id, want, err)
		}
		if id == want {
			return c
		}
		_ = c.Close() // it has done nothing
	}
}

// A release that was carried out is no loss, however late it turns out that its reply will not come.
func TestUnlock_WhoseReplyIsLost_IsNoLoss(t *testing.T) {
	n := sharedServer(t)
	a, p := newAdmin(t, n), servers.NewProxy(t, n.Addr())
	c := openLocks(t, urlOf(p.Addr()), &interlock.Options{Lease: short})
	l := mustLock(t, c, "unanswered")
	p.DropReplies()
	said := make(chan error, 1)
	go func() { said <- l.Unlock(patient(t)) }() // ends with the connection, after the timeout
	soon(t, "the server to have the lock back", func() bool { return a.holder("unanswered") == 0 })
	p.Pass() // for new connections; the old one stays mute
	if err := receive(t, "Unlock to return", said); err != nil {
		t.Errorf("the server has the lock back, and Unlock says %v", err)
	}
}
