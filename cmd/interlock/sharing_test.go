package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
)

// TestSharing_OnEveryEngine takes read/write locks and semaphores through the library on real servers: what an engine
// has works between two clients, and what it lacks is refused with a reason.
func TestSharing_OnEveryEngine(t *testing.T) {
	urls := map[string]func(t *testing.T) string{}
	for _, topology := range redisTopologies {
		if topology.name != "encrypted" && topology.name != "sentinel" { // no other than standalone
			urls["redis "+topology.name] = topology.start
		}
	}
	for _, e := range sessionEngines {
		urls[e.scheme] = func(t *testing.T) string {
			return fmt.Sprintf("%s://%s:%s@%s%s", e.scheme, e.user, enginePassword, e.start(t), e.tail)
		}
	}
	urls["file"] = func(t *testing.T) string { return "file://" + t.TempDir() }
	for name, url := range urls {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // most of it waits
			at := url(t)
			s := &sharers{t: t}
			s.one = openClient(t, at, nil)
			s.two = openClient(t, at, &interlock.Options{Observer: &interlock.Observer{
				Waiting: func(context.Context, interlock.Event) { s.waits.Add(1) },
			}})
			if s.has(s.one.RWMutex("probe", nil).TryRLock) {
				s.readersAndWriters()
				s.downgrade()
				s.upgrade()
				s.crowd()
			}
			if s.has(func(ctx context.Context) (*interlock.Lease, error) {
				return s.one.Semaphore("probe", 2, nil).TryAcquire(ctx, 2)
			}) {
				s.permits()
			}
		})
	}
}

func openClient(t *testing.T, url string, opts *interlock.Options) *interlock.Client {
	t.Helper()
	c, err := interlock.Open(t.Context(), url, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return c
}

type sharers struct {
	t        *testing.T
	one, two *interlock.Client
	waits    atomic.Int32 // how often two has had to wait
}

// has reports whether the engine has what take takes. What it has not it refuses with its name and a reason.
func (s *sharers) has(take func(context.Context) (*interlock.Lease, error)) bool {
	s.t.Helper()
	l, err := take(s.t.Context())
	if errors.Is(err, interlock.ErrUnsupported) {
		if !strings.Contains(err.Error(), ": ") {
			s.t.Errorf("refused without a reason: %v", err)
		}
		s.t.Logf("refused: %v", err)
		return false
	}
	s.unlock(s.must(l, err))
	return true
}

func (s *sharers) must(l *interlock.Lease, err error) *interlock.Lease {
	s.t.Helper()
	if err != nil {
		s.t.Fatalf("it must be granted: %v", err)
	}
	return l
}

func (s *sharers) unlock(l *interlock.Lease) {
	s.t.Helper()
	if err := l.Unlock(s.t.Context()); err != nil {
		s.t.Fatalf("Unlock: %v", err)
	}
}

func (s *sharers) held(err error, when string) {
	s.t.Helper()
	if !errors.Is(err, interlock.ErrHeld) {
		s.t.Fatalf("%s: %v, want ErrHeld", when, err)
	}
}

// later has two take something, and returns when somebody waits for it. Files do not tell who.
func (s *sharers) later(name string, take func() (*interlock.Lease, error)) <-chan *interlock.Lease {
	s.t.Helper()
	out, before := make(chan *interlock.Lease, 1), s.waits.Load()
	go func() { // ends with the wait, which Close ends at the latest
		l, err := take()
		if err != nil {
			s.t.Errorf("a wait for %s: %v", name, err)
		}
		out <- l
	}()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(5 * time.Millisecond) { // real: polls
		for info, err := range s.one.List(s.t.Context(), name) {
			unlisted := info.Waiters == nil && s.waits.Load() > before
			if err == nil && (unlisted || len(info.Waiters) > 0) {
				return out
			}
		}
	}
	s.t.Fatalf("nobody waits for %s", name)
	return nil
}

func (s *sharers) readersAndWriters() {
	s.t.Helper()
	ctx, a, b := s.t.Context(), s.one.RWMutex("rw", nil), s.two.RWMutex("rw", nil)
	one, two := s.must(a.RLock(ctx)), s.must(b.RLock(ctx))
	_, err := b.TryLock(ctx)
	s.held(err, "a write beside reads")
	writes := s.later("rw", func() (*interlock.Lease, error) { return b.Lock(ctx) })
	_, err = a.TryRLock(ctx)
	s.held(err, "a read in front of a writer")
	s.unlock(one)
	s.unlock(two)
	write := <-writes
	stamp, ok := write.Stamp()
	if !ok || stamp.Shared || stamp.Token <= two.Token() {
		s.t.Errorf("the write has the stamp %+v, %v after token %d", stamp, ok, two.Token())
	}
	read := s.must(b.RLock(write.Context(ctx)))
	_, err = a.TryRLock(ctx)
	s.held(err, "a read beside a write")
	s.unlock(write)
	// on engines that cannot convert it writes until its read ends
	if again, err := b.Lock(read.Context(ctx)); err == nil {
		if s.has(b.UpgradeableRLock) {
			s.t.Error("a reader that asks to write was let in, want ErrDeadlock")
		}
		s.unlock(again)
	} else if !errors.Is(err, interlock.ErrDeadlock) {
		s.t.Errorf("a reader that asks to write: %v, want ErrDeadlock", err)
	}
	s.unlock(read)
	broken := s.must(a.Lock(ctx))
	switch err := s.two.Break(ctx, interlock.KindRWMutex, "rw", broken.Token()); {
	case errors.Is(err, interlock.ErrUnsupported):
		s.unlock(broken)
	case err != nil:
		s.t.Fatalf("Break: %v", err)
	default:
		<-broken.Lost()
	}
	s.unlock(s.must(b.Lock(ctx)))
}

func (s *sharers) downgrade() {
	s.t.Helper()
	ctx, a, b := s.t.Context(), s.one.RWMutex("down", nil), s.two.RWMutex("down", nil)
	l := s.must(a.Lock(ctx))
	err := l.Downgrade(ctx)
	if errors.Is(err, interlock.ErrUnsupported) {
		s.unlock(l)
		return
	}
	if err != nil {
		s.t.Fatalf("Downgrade: %v", err)
	}
	s.unlock(s.must(b.TryRLock(ctx)))
	_, err = b.TryLock(ctx)
	s.held(err, "a write beside what is left of another")
	s.unlock(l)
	s.unlock(s.must(b.TryLock(ctx)))
}

func (s *sharers) upgrade() {
	s.t.Helper()
	ctx, a, b := s.t.Context(), s.one.RWMutex("up", nil), s.two.RWMutex("up", nil)
	if !s.has(a.UpgradeableRLock) {
		return
	}
	l, read := s.must(a.UpgradeableRLock(ctx)), s.must(b.RLock(ctx))
	token := l.Token()
	writes := s.later("up", func() (*interlock.Lease, error) { return b.Lock(ctx) })
	bounded, cancel := context.WithTimeout(ctx, 2*time.Second) // enough for a server to say who is in the way
	defer cancel()
	s.held(l.Upgrade(bounded), "an upgrade beside a reader")
	upgraded := make(chan error, 1)
	go func() { upgraded <- l.Upgrade(ctx) }()
	s.unlock(read)
	if err := <-upgraded; err != nil || l.Token() <= token {
		s.t.Fatalf("Upgrade: %v, token %d after %d", err, l.Token(), token)
	}
	if err := l.Downgrade(ctx); err != nil {
		s.t.Fatalf("Downgrade: %v", err)
	}
	s.unlock(l)
	s.unlock(<-writes)
}

func (s *sharers) permits() {
	s.t.Helper()
	ctx, a, b := s.t.Context(), s.one.Semaphore("sem", 3, nil), s.two.Semaphore("sem", 3, nil)
	two, one := s.must(a.Acquire(ctx, 2)), s.must(b.Acquire(ctx, 1))
	_, err := b.TryAcquire(ctx, 1)
	s.held(err, "a fourth permit")
	_, err = s.two.Semaphore("sem", 4, nil).Acquire(ctx, 1)
	if !errors.Is(err, interlock.ErrConflict) || !strings.Contains(err.Error(), "3") ||
		!strings.Contains(err.Error(), "4") {
		s.t.Errorf("another limit: %v, want ErrConflict with both", err)
	}
	waits := s.later("sem", func() (*interlock.Lease, error) { return b.Acquire(ctx, 3) })
	s.unlock(two)
	s.unlock(one)
	s.unlock(<-waits)
}
