package etcdlock

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/servers"
)

// rulesPatience bounds everything that must happen.
const rulesPatience = 20 * time.Second

// stage is a server with some drivers.
type stage struct {
	t    *testing.T
	node *servers.EtcdNode
	last int
}

func newStage(t *testing.T) *stage {
	t.Helper()
	return &stage{t: t, node: servers.EtcdServer(t, nil)}
}

// opens opens a driver whose sessions have the given timeout.
func (s *stage) opens(hosts string, session time.Duration) *Driver {
	s.t.Helper()
	d, err := driver.DefaultMux.Open(s.ctx(), "etcd://"+hosts, driver.Config{Lease: session})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = d.Close() })
	return d.(*Driver)
}

func (s *stage) ctx() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), rulesPatience)
	s.t.Cleanup(cancel)
	return ctx
}

func (s *stage) ask(name string) *driver.Request {
	s.last++
	return &driver.Request{
		Key: driver.Key{Kind: driver.KindMutex, Name: name}, ID: fmt.Sprintf("id-%d", s.last),
		Owner: "owner", Client: "client", Weight: 1, Tokens: 1,
	}
}

func (s *stage) take(d *driver.Request, by *Driver) driver.Grant {
	s.t.Helper()
	g, err := by.Acquire(s.ctx(), d)
	if err != nil {
		s.t.Fatalf("acquire: %v", err)
	}
	return g
}

func (s *stage) release(d *Driver, r *driver.Request) error {
	return d.Release(s.ctx(), &driver.Release{Key: r.Key, ID: r.ID})
}

// placeAs is the key of a request of d.
func placeAs(d *Driver, r *driver.Request) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.entries[holdID{r.Key, r.ID}].queueKey
}

// waiting is an acquire under way.
type waiting struct {
	r    *driver.Request
	done chan struct{}
	g    driver.Grant
	err  error
}

// waits returns when r is queued.
func (s *stage) waits(d *Driver, r *driver.Request) *waiting {
	s.t.Helper()
	return s.queues(r, func(ctx context.Context) (driver.Grant, error) { return d.Acquire(ctx, r) })
}

// queues is waits for what asks for r.
func (s *stage) queues(r *driver.Request, ask func(ctx context.Context) (driver.Grant, error)) *waiting {
	s.t.Helper()
	w := &waiting{r: r, done: make(chan struct{})}
	queued := make(chan struct{})
	told := sync.OnceFunc(func() { close(queued) })
	r.Waiting = func(*driver.HeldError) { told() }
	ctx := s.ctx()
	go func() { // ends with the acquire
		defer close(w.done)
		w.g, w.err = ask(ctx)
	}()
	select {
	case <-queued:
	case <-w.done:
		s.t.Fatalf("it does not wait: %+v, %v", w.g, w.err)
	}
	return w
}

func (s *stage) ends(w *waiting, within time.Duration) {
	s.t.Helper()
	select {
	case <-w.done:
	case <-time.After(within):
		s.t.Fatalf("a wait has not ended within %v", within)
	}
}

// handsOver has b wait for a lock that a holds and gives back, and returns what b holds then.
func (s *stage) handsOver(a, b *Driver) *driver.Request {
	s.t.Helper()
	held := s.ask("lock")
	s.take(held, a)
	w := s.waits(b, s.ask("lock"))
	if err := s.release(a, held); err != nil {
		s.t.Fatal(err)
	}
	s.ends(w, rulesPatience)
	if w.err != nil {
		s.t.Fatal(w.err)
	}
	return w.r
}

// soon waits until something is so.
func (s *stage) soon(what string, is func() bool) {
	s.t.Helper()
	for end := time.Now().Add(rulesPatience); !is(); <-time.After(time.Millisecond) {
		if time.Now().After(end) {
			s.t.Fatalf("not after %v: %s", rulesPatience, what)
		}
	}
}

// watched returns when d has begun to watch for n waiters, beside its session.
func (s *stage) watched(d *Driver, n int) {
	s.t.Helper()
	for end := time.Now().Add(rulesPatience); ; <-time.After(time.Millisecond) {
		d.listener.mu.Lock()
		begun := 0
		for _, w := range d.listener.watches {
			if w.begun {
				begun++
			}
		}
		d.listener.mu.Unlock()
		if begun == n+1 {
			return
		}
		if time.Now().After(end) {
			s.t.Fatalf("%d watches have begun, want %d", begun, n+1)
		}
	}
}

// openAs is opens with a user.
func (s *stage) openAs(user string) *Driver { return s.opens(user+"@"+s.node.Addr(), time.Minute) }
