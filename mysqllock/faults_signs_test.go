package mysqllock

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/enginekit/sqlsession"
	"github.com/interlock-go/interlock/internal/servers"
)

// What is no sign of life, although somebody answers.

// interposed is a proxy that keeps its clients when its own connection has broken, and answers each statement with an
// error of its own.
type interposed struct {
	net.Conn
	alone *atomic.Bool
	says  []byte
}

func (c *interposed) Write(p []byte) (int, error) {
	if !c.alone.Load() {
		return c.Conn.Write(p)
	}
	text := append([]byte{0xff, 0, 0}, "#HY000Max connect timeout reached"...)
	binary.LittleEndian.PutUint16(text[1:], 9001)
	c.says = append(append(c.says, byte(len(text)), 0, 0, p[3]+1), text...)
	return len(p), nil
}

func (c *interposed) Read(p []byte) (int, error) {
	if len(c.says) > 0 {
		n := copy(p, c.says)
		c.says = c.says[n:]
		return n, nil
	}
	return c.Conn.Read(p)
}

func TestErrors_OfAProxyThatHasLostTheServer_AreNoSignsOfLife(t *testing.T) {
	n := sharedServer(t)
	var alone atomic.Bool
	config := configOf(n.Addr())
	config.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, addr)
		return &interposed{Conn: conn, alone: &alone}, err
	}
	d, err := New(patient(t), config, &Options{Timeout: short, Shared: 1})
	if err != nil {
		t.Fatal(err)
	}
	c, err := interlock.New(d, &interlock.Options{Lease: short, CloseTimeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	l := mustLock(t, c, "behind a proxy")
	alone.Store(true)
	receive(t, "the holder to be told", l.Lost())
}

// A client that holds something asks each second what operators have broken. That is no reason not to ask whether the
// session is still its own.
func TestSwappedSession_IsFoundOut_AlsoWhenOtherStatementsAreAnswered(t *testing.T) {
	d := open(patient(t), t, sharedServer(t).Addr(), Options{Timeout: 3 * short, Shared: 1})
	defer d.Close()
	lost := make(chan struct{})
	g, err := d.Acquire(patient(t), &driver.Request{
		Key: mutex("swapped in time"), ID: "swapped in time 1", Tokens: 1,
		Lost: func(driver.LostReason, error) { close(lost) },
	})
	if err != nil {
		t.Fatal(err)
	}
	g.Session.(*sqlsession.Conn).Submit(sqlsession.Job{
		Run:  func(c *sqlsession.Conn) { _, _ = session(c).query("SELECT RELEASE_ALL_LOCKS()") },
		Dead: func(err error) { t.Error(err) },
	})
	receive(t, "the holder to be told", lost)
}

// A planned change of the primary sets the old one to read-only, and leaves its sessions alone. It goes on to answer,
// and another server grants.
func TestServer_ThatBecomesReadOnly_EndsHolds(t *testing.T) {
	n := servers.MariaDBServer(t, nil)
	c := openLocks(t, urlOf(n.Addr()), &interlock.Options{Lease: short})
	l := mustLock(t, c, "demoted")
	newAdmin(t, n).exec("SET GLOBAL read_only = 1")
	receive(t, "the holder to be told", l.Lost())
}

// forgetful is a proxy that drops LAST_INSERT_ID from answers that have a large one.
type forgetful struct{ net.Conn }

func (c forgetful) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	const eightBytes = 0xfe
	if n >= 15 && p[4] == 0 && p[6] == eightBytes { // an OK: the head, 0, the number of rows, and the value
		clear(p[7:15])
	}
	return n, err
}

func TestGrant_WhoseTokenDoesNotComeBack_IsNone(t *testing.T) {
	n := sharedServer(t)
	a := newAdmin(t, n)
	config := configOf(n.Addr())
	config.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, addr)
		return forgetful{conn}, err
	}
	d, err := New(patient(t), config, &Options{Timeout: short})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	g, err := d.Acquire(patient(t), &driver.Request{Key: mutex("no token"), ID: "no token 1", Tokens: 1})
	if !errors.Is(err, driver.ErrUnavailable) {
		t.Errorf("a grant without a token: %+v, %v", g, err)
	}
	soon(t, "the server to have the lock back", func() bool { return a.holder("no token") == 0 })
}
