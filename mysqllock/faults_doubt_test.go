package mysqllock

import (
	"context"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/drivertest"
	"github.com/interlock-go/interlock/enginekit/sqlsession"
	"github.com/interlock-go/interlock/internal/servers"
)

// mutex is a key.
func mutex(name string) driver.Key { return driver.Key{Kind: driver.KindMutex, Name: name} }

// take acquires a mutex and keeps it.
func take(t *testing.T, d *Driver, name, id string) driver.Grant {
	t.Helper()
	g, err := d.Acquire(patient(t), &driver.Request{Key: mutex(name), ID: id, Tokens: 1})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// A connection that ends here while the server hears nothing of it: its session would keep the lock for its timeout of
// 30 s. It is ended over another connection.
func TestBrokenConnection_ItsSessionIsEndedInTheServer(t *testing.T) {
	n := sharedServer(t)
	p := servers.NewProxy(t, n.Addr())
	var direct atomic.Bool
	config := configOf(n.Addr())
	config.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		if !direct.Load() {
			addr = p.Addr()
		}
		return new(net.Dialer).DialContext(ctx, network, addr)
	}
	d, err := New(patient(t), config, &Options{Shared: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	other := open(context.Background(), t, n.Addr(), Options{})
	defer other.Close()
	told := make(chan driver.LostReason, 1)
	g, err := d.Acquire(patient(t), &driver.Request{
		Key: mutex("doubt"), ID: "doubt 1", Tokens: 1, Lost: func(r driver.LostReason, _ error) { told <- r },
	})
	if err != nil {
		t.Fatal(err)
	}
	p.BlackHole(servers.ToServer)
	direct.Store(true)
	g.Session.(*sqlsession.Conn).Kill()
	begin := time.Now()
	receive(t, "the holder to be told", told)
	err = d.Release(patient(t), &driver.Release{Key: mutex("doubt"), ID: "doubt 1"})
	var lost *driver.LostError
	if !errors.As(err, &lost) || lost.Reason != driver.LostSession {
		t.Errorf("release of a hold whose connection has ended: %v", err)
	}
	grantOf(t, other, "doubt", 1)
	if took := time.Since(begin); took > 10*time.Second {
		t.Errorf("it took %v until the lock was free", took)
	}
	p.Pass()
}

// A connection that was cut off while nobody looked has not been asked, and another is asked instead.
func TestAcquire_OverASessionThatWasCutOff_AsksAnother(t *testing.T) {
	n := sharedServer(t)
	p := servers.NewProxy(t, n.Addr())
	d := open(context.Background(), t, p.Addr(), Options{Shared: 1})
	defer d.Close()
	busy, goOn := make(chan struct{}), make(chan struct{})
	d.core.OnShared(sqlsession.Job{
		Run:  func(*sqlsession.Conn) { close(busy); <-goOn },
		Dead: func(err error) { t.Error(err) },
	})
	receive(t, "the session to have something to do", busy)
	ctx, waits := drivertest.Awaited(patient(t))
	got := make(chan error, 1)
	go func() { // ends with ctx
		_, err := d.Acquire(ctx, &driver.Request{Key: mutex("cut off"), ID: "cut off 1", Tokens: 1})
		got <- err
	}()
	receive(t, "the acquire to stand behind that", waits)
	p.Reset()
	close(goOn)
	if err := receive(t, "the acquire to return", got); err != nil {
		t.Fatal(err)
	}
	if err := d.Release(patient(t), &driver.Release{Key: mutex("cut off"), ID: "cut off 1"}); err != nil {
		t.Error(err)
	}
}

// What was not written has not been asked; of anything else nobody knows.
func TestUnasked_IsWhatDidNotLeaveThisProcess(t *testing.T) {
	for _, row := range []struct {
		err     error
		unasked bool
	}{
		{nil, false},
		{fmt.Errorf("%w: %w", errUnprepared, mysql.ErrInvalidConn), true},
		{sqldriver.ErrBadConn, true},
		{mysql.ErrInvalidConn, false},
	} {
		if err := unasked(row.err); errors.Is(err, sqlsession.ErrUnasked) != row.unasked || !errors.Is(err, row.err) {
			t.Errorf("%v becomes %v", row.err, err)
		}
	}
}

// Trust counts from before the statement was sent, also after a wait, whenever its answer has come.
func TestConfirmed_IsBeforeTheAnswer(t *testing.T) {
	const slow = 150 * time.Millisecond
	n := sharedServer(t)
	p := servers.NewProxy(t, n.Addr())
	d := open(context.Background(), t, p.Addr(), Options{})
	defer d.Close()
	grantOf(t, d, "slow", 1)
	p.Delay(servers.ToClient, slow)
	begin := time.Now()
	g := take(t, d, "slow", "slow 1")
	if ago := time.Since(g.Sent); g.Sent.Before(begin) || ago < slow {
		t.Errorf("trust counts from %v after the request, %v ago, and the answer alone took %v", g.Sent.Sub(begin), ago,
			slow)
	}
	if g.Sent.After(g.Session.Confirmed()) { // it may have been confirmed again by now
		t.Errorf("sent %v, confirmed %v", g.Sent, g.Session.Confirmed())
	}
	got := make(chan driver.Grant, 1)
	told := make(chan struct{}, 8)
	go func() { // ends with the grant
		g, err := d.Acquire(context.Background(), &driver.Request{
			Key: mutex("slow"), ID: "slow 2", Tokens: 1, Waiting: func(*driver.HeldError) { told <- struct{}{} },
		})
		if err != nil {
			t.Error(err)
		}
		got <- g
	}()
	receive(t, "the wait to begin", told)
	begin = time.Now()
	if err := d.Release(patient(t), &driver.Release{Key: mutex("slow"), ID: "slow 1"}); err != nil {
		t.Fatal(err)
	}
	g = receive(t, "the grant", got)
	// The answer to the wait takes as long as that to the release, and then the token is written.
	if ago := time.Since(g.Session.Confirmed()); ago < slow*9/10 {
		t.Errorf("trust counts from %v ago, and the answer alone took %v", ago, slow)
	}
	if late := g.Session.Confirmed().Sub(begin); late < slow/2 {
		t.Errorf("trust counts from %v after the release, when the wait had not been answered", late)
	}
}

// A statement that fails when it has taken the lock already gives it back.
func TestTokenThatCannotBeWritten_GivesTheLockBack(t *testing.T) {
	n := sharedServer(t)
	a := newAdmin(t, n)
	d := open(context.Background(), t, n.Addr(), Options{Timeout: short})
	defer d.Close()
	grantOf(t, d, "row", 1)
	tx, err := a.db.BeginTx(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var token int64
	if err := tx.QueryRowContext(patient(t), "SELECT token FROM "+tokenTable+
		" WHERE name = 'row' FOR UPDATE").Scan(&token); err != nil {
		t.Fatal(err)
	}
	_, err = d.Acquire(patient(t), &driver.Request{Key: mutex("row"), ID: "row 1", Tokens: 1})
	if !errors.Is(err, driver.ErrUnavailable) {
		t.Errorf("with the token's row locked: %v", err)
	}
	if err := d.Release(patient(t), &driver.Release{
		Key: mutex("row"), ID: "row 1", Undo: true,
		Horizon: time.Minute,
	}); err != nil {
		t.Errorf("undo: %v", err)
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	if a.holder("row") != 0 {
		t.Error("the lock stays with nobody")
	}
	grantOf(t, d, "row", 1)
}

// The row of a break that came too late ends no later hold.
func TestStaleBreak_EndsNothing(t *testing.T) {
	n := sharedServer(t)
	a := newAdmin(t, n)
	d := open(context.Background(), t, n.Addr(), Options{})
	defer d.Close()
	old := grantOf(t, d, "stale", 1)
	lost := make(chan driver.LostReason, 1)
	_, err := d.Acquire(patient(t), &driver.Request{
		Key: mutex("stale"), ID: "stale 1", Tokens: 1, Lost: func(r driver.LostReason, _ error) { lost <- r },
	})
	if err != nil {
		t.Fatal(err)
	}
	a.exec(fmt.Sprintf("INSERT INTO %s_breaks VALUES (x'%s', %d, %d, 1)", tokenTable, d.idOf(mutex("stale")).hex(),
		old.Token, a.holder("stale")))
	soon(t, "the row to be seen", func() bool {
		return a.number("SELECT COUNT(*) FROM "+tokenTable+"_breaks WHERE asked = 1") == 0
	})
	select {
	case reason := <-lost:
		t.Errorf("the later hold is lost: %s", reason)
	default:
	}
	if err := d.Release(patient(t), &driver.Release{Key: mutex("stale"), ID: "stale 1"}); err != nil {
		t.Errorf("release: %v", err)
	}
}

// A session that does not answer as itself has lost its locks, whoever answers instead.
func TestSwappedSession_LosesItsHolds(t *testing.T) {
	n := sharedServer(t)
	a := newAdmin(t, n)
	d := open(context.Background(), t, n.Addr(), Options{Timeout: short, Shared: 1})
	defer d.Close()
	lost := make(chan error, 1)
	g, err := d.Acquire(patient(t), &driver.Request{
		Key: mutex("swapped"), ID: "swapped 1", Tokens: 1, Lost: func(_ driver.LostReason, cause error) {
			lost <- cause
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	c := g.Session.(*sqlsession.Conn)
	c.Submit(sqlsession.Job{
		Run:  func(c *sqlsession.Conn) { _, _ = session(c).query("SELECT RELEASE_ALL_LOCKS()") },
		Dead: func(err error) { t.Error(err) },
	})
	if cause := receive(t, "the holder to be told", lost); !errors.Is(cause, errSwapped) {
		t.Errorf("the cause is %v", cause)
	}
	if a.holder("swapped") != 0 {
		t.Error("the lock is held")
	}
}
