package interlocktest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/memlock"
)

// Options are the options of a store. The zero value and nil mean the same.
type Options struct {
	// MayStayHeld says that it is no mistake when locks are held at the end of the test.
	MayStayHeld bool

	_ struct{}
}

// Store keeps the locks of one test. Its methods may be called from several goroutines at once.
type Store struct {
	t    testing.TB
	root *memlock.Driver // sees the locks, whatever fault there is

	mu      sync.Mutex // guards what follows
	faults  faults
	asked   [ops]int // how many requests clients have sent
	clients []member
}

// member is a client of the store, and its way there.
type member struct {
	client *interlock.Client
	link   *link
}

// New returns a store that lives as long as the test. At the test's end, after its deferred calls and its own clean-up,
// New reports locks that are still held as errors of the test, and closes all clients. Before it reports one it waits
// for two seconds, because clients take back in the background what they have lost.
func New(t testing.TB, opts *Options) *Store {
	s := &Store{t: t, root: memlock.New(nil)}
	mayStayHeld := opts != nil && opts.MayStayHeld
	t.Cleanup(func() {
		t.Helper()
		s.change(func(f *faults) { *f = faults{} }) // closing would wait for the engine
		if !mayStayHeld {
			s.reportHeld()
		}
		s.close()
	})
	return s
}

// Client returns a client with a process of its own, as the store sees it. It is closed at the test's end. Wrong
// options end the test.
func (s *Store) Client(opts *interlock.Options) *interlock.Client {
	s.t.Helper()
	d := &link{Driver: s.root.Peer(), store: s}
	c, err := interlock.New(d, opts)
	if err != nil {
		s.t.Fatal(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clients = append(s.clients, member{c, d})
	return c
}

// settling is how long a hold may take to end that nobody has any more: clients give back in the background what they
// lost, or what an answer was lost about. Of a fault by which a hold was lost the store learns by the end of its lease.
const settling = 2 * time.Second

// reportHeld makes an error of each hold that lasts.
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

// held describes the holds. A lock that rests or is retained has no owner.
func (s *Store) held() (all []string, err error) {
	for info, err := range s.root.Locks(context.WithoutCancel(s.t.Context()), "") {
		if err != nil {
			return all, err
		}
		for _, h := range info.Holders {
			if h.Owner != "" {
				all = append(all, fmt.Sprintf(
					"%s %q, by client %s (owner %s, label %q)", info.Kind, info.Name, h.Client, h.Owner, h.Label))
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
		if err := errors.Join(m.client.Close(), m.link.Close()); err != nil {
			s.t.Errorf("interlocktest: close a client: %v", err)
		}
	}
	_ = s.root.Close()
}
