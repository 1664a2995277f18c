package interlocktest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/drivertest/faulty"
	"github.com/interlock-go/interlock/memlock"
)

// The store of a test: its clients, and the check at the end that nothing is still held.

// Options are the options of a store. The zero value and nil mean the same.
type Options struct {
	// MayStayHeld says that locks may still be held at the end of the test.
	MayStayHeld bool

	_ struct{}
}

// Store keeps the locks of one test. Its methods may be called from several goroutines at once.
type Store struct {
	t      testing.TB
	root   *memlock.Driver // sees the locks, whatever fault there is
	places places

	mu      sync.Mutex // guards what follows; no request runs under it
	faults  faults
	clients []member
}

// member is a client of the store, and its way there.
type member struct {
	client  *interlock.Client
	engine  driver.Driver // the memory behind the faults
	control *faulty.Control
	memory  *memlock.Driver
}

// New returns a store that lives as long as the test. At the test's end, after its deferred calls and its own clean-up,
// New reports locks that are still held as errors of the test, with the line that took them, and closes all clients.
// Before it reports one it waits for up to two seconds, because clients release in the background what they have lost.
func New(t testing.TB, opts *Options) *Store {
	s := &Store{t: t, root: memlock.New(nil), places: places{from: make(map[interlock.HoldID]place)}}
	mayStayHeld := opts != nil && opts.MayStayHeld
	t.Cleanup(func() {
		t.Helper()
		s.change(func(f *faults) { *f = faults{} }) // with a fault, closing would wait for the engine
		if !mayStayHeld {
			s.reportHeld()
		}
		s.close()
	})
	return s
}

// Client returns a client that is like a process of its own to the store. It is closed at the test's end. Invalid
// options end the test. Without a Logger it logs nothing.
func (s *Store) Client(opts *interlock.Options) *interlock.Client {
	s.t.Helper()
	m := member{memory: s.root.Peer()}
	m.engine, m.control = faulty.Wrap(m.memory, 0)
	var own interlock.Options
	if opts != nil {
		own = *opts
	}
	if own.Logger == nil { // the test provokes the losses that slog.Default would get
		own.Logger = slog.New(slog.DiscardHandler)
	}
	own.Observer = s.places.observer(own.Observer)
	c, err := interlock.New(m.engine, &own)
	if err != nil {
		s.t.Fatal(err)
	}
	m.client = c
	s.mu.Lock()
	defer s.mu.Unlock()
	m.control.Rules(s.faults.rules()...)
	s.clients = append(s.clients, m)
	return c
}

// settling is how long a hold without an owner may take to end. Clients release in the background what they have lost,
// and what they may have been granted without an answer. When a fault made a client lose a hold, the store learns of it
// when the lease ends.
const settling = 2 * time.Second

// reportHeld reports each hold that lasts as an error of the test.
func (s *Store) reportHeld() {
	s.t.Helper()
	held, err := s.held()
	for began := time.Now(); len(held) > 0 && err == nil && time.Since(began) < settling; {
		time.Sleep(settling / 200)
		held, err = s.held()
	}
	if err != nil {
		s.t.Errorf("interlocktest: list what is held: %v", err)
	}
	for _, one := range held {
		s.t.Errorf("interlocktest: still held at the end of the test: %s; is there a way out without Unlock?", one)
	}
}

// held describes the holds. A lock that rests or is retained has no owner, so it does not count.
func (s *Store) held() (all []string, err error) {
	for info, err := range s.root.Locks(context.WithoutCancel(s.t.Context()), "") {
		if err != nil {
			return all, err
		}
		for _, h := range info.Holders {
			if h.Owner != "" {
				all = append(all, fmt.Sprintf(
					"%s %q, by client %s (owner %s, label %q)%s", info.Kind, info.Name, h.Client, h.Owner, h.Label,
					s.places.of(info.Kind, info.Name, h.Owner)))
			}
		}
	}
	return all, nil
}

// close closes all clients, and then the store.
func (s *Store) close() {
	s.t.Helper()
	s.mu.Lock()
	clients := s.clients
	s.mu.Unlock()
	for _, m := range clients {
		if err := errors.Join(m.client.Close(), m.engine.Close()); err != nil {
			s.t.Errorf("interlocktest: close a client: %v", err)
		}
	}
	_ = s.root.Close()
}
