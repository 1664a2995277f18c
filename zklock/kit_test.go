package zklock

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/locktest"
)

// patience bounds all that must happen at some time.
const patience = locktest.Patience

// What tests of several engines have in common.
var (
	bounded = locktest.Patient
	alarm   = locktest.Alarm
	soon    = locktest.Soon
)

// freshRoot returns a root that no other test uses.
func freshRoot() string { return "/test-" + strings.ToLower(rand.Text()[:12]) }

// open returns a driver that is closed with the test.
func open(t testing.TB, hosts []string, o *Options) *Driver {
	t.Helper()
	d, err := New(bounded(t), hosts, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return d
}

// admin is a client of the library that looks at what the driver does.
type admin struct {
	*zk.Conn
	t testing.TB
}

func newAdmin(t testing.TB, addr string) *admin {
	t.Helper()
	connected := make(chan struct{}, 1)
	conn, _, err := zk.Connect([]string{addr}, 30*time.Second, zk.WithLogInfo(false),
		zk.WithEventCallback(func(e zk.Event) {
			if e.State == zk.StateHasSession {
				select {
				case connected <- struct{}{}:
				default:
				}
			}
		}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	select {
	case <-connected:
	case <-time.After(patience):
		t.Fatal("the test's own client has no session")
	}
	return &admin{conn, t}
}

// nodes returns what is below path, or nothing if path is not there.
func (a *admin) nodes(path string) []string {
	a.t.Helper()
	names, _, err := a.Children(path)
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		a.t.Fatalf("children of %s: %v", path, err)
	}
	return names
}

func mutex(name string) driver.Key { return driver.Key{Kind: driver.KindMutex, Name: name} }

// request asks for a mutex.
func request(name string) *driver.Request {
	return &driver.Request{Key: mutex(name), ID: rand.Text(), Owner: "owner", Client: "client", Weight: 1, Tokens: 1}
}

func release(r *driver.Request) *driver.Release { return &driver.Release{Key: r.Key, ID: r.ID} }

// take acquires.
func take(t testing.TB, d *Driver, r *driver.Request) driver.Grant {
	t.Helper()
	g, err := d.Acquire(bounded(t), r)
	if err != nil {
		t.Fatalf("Acquire %q: %v", r.Name, err)
	}
	return g
}

func give(t testing.TB, d *Driver, r *driver.Request) {
	t.Helper()
	if err := d.Release(bounded(t), release(r)); err != nil {
		t.Fatalf("Release %q: %v", r.Name, err)
	}
}

// waiting is an Acquire under way.
type waiting struct {
	r      *driver.Request
	queued chan *driver.HeldError
	done   chan result
}

type result struct {
	g   driver.Grant
	err error
}

// begin acquires in the background.
func begin(ctx context.Context, d *Driver, r *driver.Request) *waiting {
	w := &waiting{r: r, queued: make(chan *driver.HeldError, 64), done: make(chan result, 1)}
	r.Waiting = func(held *driver.HeldError) {
		select {
		case w.queued <- held:
		default: // nobody counts so many
		}
	}
	go func() { // ends with ctx
		g, err := d.Acquire(ctx, r)
		w.done <- result{g, err}
	}()
	return w
}

// queue begins and returns when the request is queued.
func queue(t testing.TB, d *Driver, r *driver.Request) *waiting {
	t.Helper()
	w := begin(bounded(t), d, r)
	receive(t, "a wait to be queued", w.queued)
	return w
}

func (w *waiting) granted(t testing.TB, what string) driver.Grant {
	t.Helper()
	got := receive(t, what, w.done)
	if got.err != nil {
		t.Fatalf("%s: %v", what, got.err)
	}
	return got.g
}

// receive waits for a signal.
func receive[T any](t testing.TB, what string, signal <-chan T) T {
	t.Helper()
	return locktest.Receive(t, what, signal)
}
