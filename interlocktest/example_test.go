package interlocktest_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/fence"
	"github.com/interlock-go/interlock/interlocktest"
)

// example stands for the *testing.T of a test, which examples do not have. A test begins with synctest.Test instead, so
// that what takes time here takes none.
type example struct {
	testing.TB
	cleanup []func()
}

func (e *example) Helper()                           {}
func (e *example) Context() context.Context          { return context.Background() }
func (e *example) Cleanup(f func())                  { e.cleanup = append(e.cleanup, f) }
func (e *example) Fatal(args ...any)                 { panic(fmt.Sprint(args...)) }
func (e *example) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }

// Errorf prints which lock it is about. Who holds it follows: the name of this process, another one every day.
func (e *example) Errorf(_ string, args ...any) {
	lock, _, _ := strings.Cut(fmt.Sprint(args[0]), ",")
	fmt.Println("still held:", lock)
}

// end runs what the test has registered, as the testing package does.
func (e *example) end() {
	for _, f := range slices.Backward(e.cleanup) {
		f()
	}
}

// A lock that is not given back on some way out is an error of the test.
func ExampleNew() {
	t := new(example)
	store := interlocktest.New(t, nil)
	_, _ = store.Client(nil).Lock(t.Context(), "stock") // and no Unlock
	t.end()
	// Output: still held: mutex "stock"
}

// Each client is as a process of its own.
func ExampleStore_Client() {
	t := new(example)
	defer t.end()
	store := interlocktest.New(t, nil)
	first, second := store.Client(nil), store.Client(nil)
	lease, _ := first.Lock(t.Context(), "nightly")
	ran, err := second.Mutex("nightly", nil).TryDo(t.Context(), func(context.Context) error { return nil })
	fmt.Println(ran, err, lease.Unlock(t.Context()))
	// Output: false <nil> <nil>
}

// The work is told by its context that the lock was taken away.
func ExampleStore_Lose() {
	t := new(example)
	defer t.end()
	store := interlocktest.New(t, nil)
	err := store.Client(nil).Do(t.Context(), "import", func(ctx context.Context) error {
		store.Lose(interlock.KindMutex, "import")
		<-ctx.Done()
		return context.Cause(ctx)
	})
	var lost *interlock.LostError
	fmt.Println(errors.As(err, &lost) && lost.Reason == interlock.LostBroken)
	// Output: true
}

// What does the program do when the engine is away?
func ExampleStore_SetDown() {
	t := new(example)
	defer t.end()
	store := interlocktest.New(t, nil)
	locks := store.Client(nil)
	store.SetDown(true)
	_, err := locks.TryLock(t.Context(), "x")
	fmt.Println(errors.Is(err, interlock.ErrUnavailable))
	// Output: true
}

// The holder is told before the engine can give the lock to another.
func ExampleStore_FailRenewals() {
	t := new(example)
	defer t.end()
	store := interlocktest.New(t, nil)
	lease, _ := store.Client(&interlock.Options{Lease: 300 * time.Millisecond}).Lock(t.Context(), "x")
	store.FailRenewals(true)
	<-lease.Lost()
	var lost *interlock.LostError
	fmt.Println(errors.As(lease.Err(), &lost) && lost.Reason == interlock.LostUnconfirmed)
	// Output: true
}

// A call with a deadline ends at its deadline, also when the engine is slow.
func ExampleStore_SetDelay() {
	t := new(example)
	defer t.end()
	store := interlocktest.New(t, nil)
	store.SetDelay(time.Hour)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	_, err := store.Client(nil).Lock(ctx, "x")
	fmt.Println(errors.Is(err, context.DeadlineExceeded))
	// Output: true
}

// The reply to the request for a lock is lost: the caller gets an error, and the lock does not stay held for nobody.
func ExampleStore_LoseReplies() {
	t := new(example)
	defer t.end()
	store := interlocktest.New(t, nil)
	store.LoseReplies(interlocktest.OpAcquire, true)
	_, err := store.Client(nil).Lock(t.Context(), "x")
	store.LoseReplies(interlocktest.OpAcquire, false)
	fmt.Println(errors.Is(err, interlock.ErrUnavailable))
	lease, err := store.Client(nil).Lock(t.Context(), "x")
	fmt.Println(err, lease.Unlock(t.Context()))
	// Output:
	// true
	// <nil> <nil>
}

// A process that stood still for longer than its lease goes on writing as if nothing had happened. The fence at the
// resource refuses that.
func ExampleStore_Suspend() {
	t := new(example)
	defer t.end()
	store := interlocktest.New(t, nil)
	stopped, other := store.Client(nil), store.Client(nil)
	var stock fence.MemoryGuard
	old, _ := stopped.Lock(t.Context(), "stock")
	store.Suspend(stopped, time.Hour)
	current, _ := other.Lock(t.Context(), "stock")

	newer, _ := current.Stamp()
	older, trusted := old.Stamp()
	fmt.Println(trusted, stock.Check("stock", newer), errors.Is(stock.Check("stock", older), fence.ErrStale))
	fmt.Println(errors.Is(old.Unlock(t.Context()), interlock.ErrLost), current.Unlock(t.Context()))
	// Output:
	// true <nil> true
	// true <nil>
}

// A loop that takes the lock each time costs two requests a turn.
func ExampleStore_Requests() {
	t := new(example)
	defer t.end()
	store := interlocktest.New(t, nil)
	locks := store.Client(nil)
	for range 10 {
		_ = locks.Do(t.Context(), "x", func(context.Context) error { return nil })
	}
	fmt.Println(store.Requests(interlocktest.OpAcquire), store.Requests(interlocktest.OpRelease))
	// Output: 10 10
}
