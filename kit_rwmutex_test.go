package interlock

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
)

// Short forms of what tests of read/write locks and semaphores do: take a hold that must be granted, call in a
// goroutine, check an error.

// must returns a function that returns the hold of a call, and fails if the call has returned an error.
func must(t *testing.T) func(l *Lease, err error) *Lease {
	return func(l *Lease, err error) *Lease {
		t.Helper()
		if err != nil {
			t.Fatalf("it must be granted: %v", err)
		}
		return l
	}
}

// wantErr fails unless err matches target.
func wantErr(t *testing.T, what string, err, target error) {
	t.Helper()
	if !errors.Is(err, target) {
		t.Fatalf("%s: %v, want %v", what, err, target)
	}
}

// wantUnanswered fails unless err is an UnavailableError that names the operation op.
func wantUnanswered(t *testing.T, op string, err error) {
	t.Helper()
	var unavailable *UnavailableError
	if !errors.As(err, &unavailable) || unavailable.Op != op {
		t.Fatalf("%s: %v, want that its outcome is unknown", op, err)
	}
}

// later calls f in a goroutine and returns where the outcome will be.
func later(f func() (*Lease, error)) <-chan outcome {
	out := make(chan outcome, 1)
	go func() {
		l, err := f()
		out <- outcome{l, err}
	}()
	return out
}

// stillWaits fails if out has an outcome once all other goroutines of the bubble are blocked.
func stillWaits[T any](t *testing.T, out <-chan T, when string) {
	t.Helper()
	synctest.Wait()
	select {
	case got := <-out:
		t.Fatalf("%s: it does not wait any more: %+v", when, got)
	default:
	}
}

// upgradeLater upgrades l in a goroutine, and returns where the outcome will be.
func upgradeLater(ctx context.Context, l *Lease) <-chan error {
	out := make(chan error, 1)
	go func() { out <- l.Upgrade(ctx) }()
	return out
}

func isShared(t *testing.T, l *Lease) bool {
	t.Helper()
	s, ok := l.Stamp()
	if !ok || s.Token != l.Token() || s.Nonce == "" {
		t.Fatalf("the stamp is %+v, %v, the token %d", s, ok, l.Token())
	}
	return s.Shared
}
