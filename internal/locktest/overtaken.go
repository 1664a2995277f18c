package locktest

import (
	"context"
	"errors"
	"testing"

	"github.com/interlock-go/interlock"
)

// WatchEnd watches a hold that will be lost. What it returns is called when the next owner is in, and fails if by the
// holder's own word both are, or if the next one's token is not newer. It returns what the holder had not been told by
// then, which may be because this process stood still between two instants.
func WatchEnd(t testing.TB, held *interlock.Lease) func(next *interlock.Lease) (late string) {
	work, lost := held.Context(context.Background()), held.Lost()
	return func(next *interlock.Lease) (late string) {
		t.Helper()
		select {
		case <-lost:
		default:
			late = "Lost is open. "
		}
		if work.Err() == nil {
			late += "The work's context goes on. "
		}
		if _, stamped := held.Stamp(); stamped || held.Err() == nil {
			t.Error("two are in, by their own word")
		}
		if held.Token() >= next.Token() {
			t.Errorf("token %d is in after %d", next.Token(), held.Token())
		}
		var reason *interlock.LostError
		if !errors.As(held.Err(), &reason) {
			t.Errorf("the holder has lost it by %v", held.Err())
		}
		return late
	}
}

// OnceInTime runs a test that returns what came late, again if this process may have stood still: only times in a row
// are a failure. try is the number of the run, from 0.
func OnceInTime(t testing.TB, times int, run func(try int) (late string)) {
	t.Helper()
	for try := 0; ; try++ {
		late := run(try)
		if late == "" {
			return
		}
		if try == times-1 {
			t.Fatalf("%d times in a row, the last time: %s", times, late)
		}
		t.Logf("once more: %s", late)
	}
}
