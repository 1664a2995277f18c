package pace

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"
)

// EndsInTime runs f with a context of 200 ms, which it must not exceed by more than slack and what a busy machine adds:
// f waits for a server that hangs. Time in which this process stands still does not count. What ends by a timeout and
// what is cancelled go different ways in client libraries, so it is one of them.
func EndsInTime(t *testing.T, name string, slack time.Duration, f func(ctx context.Context) error) {
	t.Helper()
	const limit = 200 * time.Millisecond
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	if rand.N(2) == 0 {
		ctx, cancel = context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		time.AfterFunc(limit, cancel)
	}
	clock, ended := Process(), make(chan time.Duration, 1)
	// a machine under load lets this goroutine wait as long as the other
	context.AfterFunc(ctx, func() { ended <- clock.Now() })
	err := f(ctx)
	returned := clock.Now()
	if late := returned - <-ended; late > slack {
		t.Errorf("%s returned %v after its context had ended", name, late)
	}
	if err == nil {
		t.Errorf("%s: no error from a server that hangs", name)
	}
}
