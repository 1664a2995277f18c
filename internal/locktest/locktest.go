// Package locktest has what tests of several engines need that go through the whole library, as a user's program does.
package locktest

import (
	"bytes"
	"context"
	"flag"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
	_ "github.com/interlock-go/interlock/internal/quiet" // tests break locks on purpose
)

// Patience bounds everything that must happen at some time.
const Patience = 20 * time.Second

var seed = flag.Uint64("faults.seed", 0, "replay the faults with this seed (the schedule is the machine's)")

// Rand returns a source of random numbers whose seed is in the log.
func Rand(t testing.TB) *rand.Rand {
	t.Helper()
	s := *seed
	if s == 0 {
		s = rand.Uint64()
	}
	t.Logf("seed %d", s)
	return rand.New(rand.NewPCG(s, 0))
}

// Patient returns a context for calls that must succeed.
func Patient(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	t.Cleanup(cancel)
	return ctx
}

// Open opens a client as users do. It is closed with the test.
func Open(t testing.TB, url string, o *interlock.Options) *interlock.Client {
	t.Helper()
	c, err := interlock.Open(Patient(t), url, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() }) // what was not confirmed is the test's own business
	return c
}

// MustLock locks.
func MustLock(t testing.TB, c *interlock.Client, name string) *interlock.Lease {
	t.Helper()
	l, err := c.Lock(Patient(t), name)
	if err != nil {
		t.Fatalf("Lock %q: %v", name, err)
	}
	return l
}

// MustUnlock unlocks.
func MustUnlock(t testing.TB, l *interlock.Lease) {
	t.Helper()
	if err := l.Unlock(Patient(t)); err != nil {
		t.Fatalf("Unlock %q: %v", l.Name(), err)
	}
}

// Within reports whether something becomes so in time.
func Within(limit time.Duration, is func() bool) bool {
	for end := time.Now().Add(limit); time.Now().Before(end); <-time.After(2 * time.Millisecond) {
		if is() {
			return true
		}
	}
	return is()
}

// Soon waits until something is so.
func Soon(t testing.TB, what string, is func() bool) {
	t.Helper()
	if !Within(Patience, is) {
		t.Fatalf("not after %v: %s", Patience, what)
	}
}

// Standing waits until a goroutine stands in a function, of which nothing else tells. The goroutine may be that of
// another test that runs at the same time.
func Standing(t testing.TB, function string) {
	t.Helper()
	stacks := make([]byte, 4<<20)
	Soon(t, "a goroutine in "+function, func() bool {
		return bytes.Contains(stacks[:runtime.Stack(stacks, true)], []byte(function+"("))
	})
}

// Receive waits for a signal.
func Receive[T any](t testing.TB, what string, signal <-chan T) T {
	t.Helper()
	select {
	case v := <-signal:
		return v
	case <-time.After(Patience):
		t.Fatalf("not after %v: %s", Patience, what)
		panic("not reached")
	}
}

// Alarm tells when d is over. If the machine stands still it is late as well, so what has to come by then is measured
// against it.
func Alarm(d time.Duration) <-chan time.Time {
	over := make(chan time.Time, 1)
	time.AfterFunc(d, func() { over <- time.Now() })
	return over
}
