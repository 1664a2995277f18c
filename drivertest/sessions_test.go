package drivertest_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/drivertest"
	"github.com/interlock-go/interlock/memlock"
)

// session makes a Sessions engine of the memory engine: each client keeps all its holds alive with one heartbeat. So
// the suite itself is tried on an engine of that sort, in virtual time.
type session struct {
	*memory
	store driver.Renewer

	mu        sync.Mutex // guards what follows; Lost is not called under it
	holds     map[string]*driver.Request
	confirmed time.Time
	paused    bool

	stop    context.CancelFunc
	beating sync.WaitGroup
}

// memory is the memory engine reduced to these interfaces, so that it seems to have no leases.
type memory struct {
	driver.Driver
	driver.Inspector
	driver.Breaker
	driver.Resizer
}

const timeout = 3 * time.Second

func openSession(d *memlock.Driver) *session {
	ctx, stop := context.WithCancel(context.Background())
	s := &session{
		memory: &memory{d, d, d, d}, store: d, holds: make(map[string]*driver.Request), confirmed: time.Now(),
		stop: stop,
	}
	s.beating.Go(func() {
		ticker := time.NewTicker(timeout / 3)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				s.heartbeat(ctx)
			case <-ctx.Done():
				return
			}
		}
	})
	return s
}

func (s *session) heartbeat(ctx context.Context) {
	s.mu.Lock()
	var batch []driver.Renewal
	for id, r := range s.holds {
		batch = append(batch, driver.Renewal{Key: r.Key, ID: id, Lease: timeout, Owner: r.Owner, Label: r.Label})
	}
	paused := s.paused
	s.mu.Unlock()
	if paused {
		return
	}
	sent := time.Now()
	s.store.Renew(ctx, batch, func(int, error) {}) // the engine tells Lost by itself, and a release finds out
	s.mu.Lock()
	defer s.mu.Unlock()
	s.confirmed = sent
}

func (s *session) Confirmed() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.confirmed
}

func (s *session) pause() (resume func()) {
	set := func(paused bool) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.paused = paused
	}
	set(true)
	return func() { set(false) }
}

func (s *session) Traits() driver.Traits {
	t := s.memory.Traits()
	t.Engine, t.Lifetime, t.Timeout = "sessions", driver.Sessions, timeout
	t.Unsupported = []driver.Unsupported{{Ability: driver.Conversion, Reason: "a place in the queue cannot be changed"}}
	t.Kinds = slices.DeleteFunc(t.Kinds, func(k driver.Kind) bool {
		return k == driver.KindLatch || k == driver.KindCond
	})
	return t
}

func (s *session) Acquire(ctx context.Context, r *driver.Request) (driver.Grant, error) {
	own := *r
	own.Lease = timeout
	g, err := s.memory.Acquire(ctx, &own)
	if err != nil {
		return g, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.holds[r.ID] = &own
	g.Lease, g.Session = timeout, s
	return g, nil
}

func (s *session) Release(ctx context.Context, r *driver.Release) error {
	s.mu.Lock()
	delete(s.holds, r.ID)
	s.mu.Unlock()
	return s.memory.Release(ctx, r)
}

// Renew only serves to show that a hold is retained.
func (s *session) Renew(ctx context.Context, batch []driver.Renewal, done func(int, error)) {
	batch = slices.Clone(batch)
	for i := range batch {
		batch[i].Lease = time.Hour // the session ends it
	}
	s.store.Renew(ctx, batch, done)
}

func (s *session) Close() error {
	s.stop()
	s.beating.Wait()
	return s.memory.Close()
}

// examineSessions runs the suite on a Sessions engine whose harness tells what change leaves of it.
func examineSessions(t *testing.T, change func(h *drivertest.Harness)) (report *drivertest.Report) {
	synctest.Test(t, func(t *testing.T) {
		store := memlock.New(nil)
		defer store.Close()
		h := drivertest.Harness{
			Open: func(context.Context, *testing.T) driver.Driver { return openSession(store.Peer()) },
			Crash: func(t *testing.T, d driver.Driver) {
				if err := d.Close(); err != nil { // as the network sees it: silence, and the waits are gone
					t.Error(err)
				}
			},
			Pause: func(_ *testing.T, d driver.Driver) func() { return d.(*session).pause() },
		}
		change(&h)
		report = drivertest.Examine(t, h)
	})
	return report
}

func TestASessionsEngine_IsAccepted(t *testing.T) {
	report := examineSessions(t, func(*drivertest.Harness) {})
	for _, b := range report.Behaviours {
		if b.Status == drivertest.Failed {
			t.Errorf("%s: %s:\n\t%s", b.Promise, b.Behaviour, b.Reason)
		}
	}
	// This engine has none of these optional interfaces.
	optional := []drivertest.Promise{
		drivertest.Requeueing, drivertest.Resuming, drivertest.Bundling,
		drivertest.Latching, drivertest.Conditions, drivertest.Hanging, drivertest.Delaying, drivertest.Adopting,
	}
	for _, v := range report.Promises {
		want := drivertest.Kept
		if slices.Contains(optional, v.Promise) {
			want = drivertest.NotApplicable
		}
		if v.Promise == drivertest.Conversion {
			want = drivertest.Lacking // and it says so
		}
		if v.Status != want {
			t.Errorf("%s is %s (%s), want it %s", v.Promise, v.Status, v.Reason, want)
		}
	}
}

func TestASessionsEngine_NeedsCrashAndPause(t *testing.T) {
	report := examineSessions(t, func(h *drivertest.Harness) { h.Crash, h.Pause = nil, nil })
	broken := report.Broken()
	if len(broken) != 2 || broken[0] != drivertest.Expiry || broken[1] != drivertest.Crash {
		t.Errorf("without Crash and Pause it is rejected for %q, want expiry and crash", broken)
	}
}
