package worker

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/memlock"
	"github.com/interlock-go/interlock/torture/history"
)

// forgetful is an engine that has forgotten the first count of each latch, as a server that comes back
// without its last second.
type forgetful struct {
	*memlock.Driver
	asked map[string]bool
}

func (f *forgetful) CountDown(ctx context.Context, c *driver.LatchCall) (int64, error) {
	if f.asked[c.Name] {
		return f.Driver.CountDown(ctx, c)
	}
	f.asked[c.Name] = true
	return LatchCount - 1, nil
}

// Nobody is ever let go when a count was forgotten: the wait ends when the last count leaves more than zero, and not
// only when its patience does.
func TestALatch_OfWhichACountWasForgotten_IsNotWaitedForToTheEnd(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		log, err := history.Create(dir, "proc")
		if err != nil {
			t.Fatal(err)
		}
		locks, err := interlock.New(&forgetful{memlock.New(nil), map[string]bool{}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		j := &Job{Hold: 10 * time.Millisecond, Patience: time.Hour}
		begun := time.Now()
		newWorker(j, log, locks, 0).countDown(t.Context())
		if took := time.Since(begun); took > LatchCount*j.Hold {
			t.Errorf("it took %v", took)
		}
		if err := locks.Close(); err != nil {
			t.Error(err)
		}
		if err := log.Close(); err != nil {
			t.Error(err)
		}
		all, err := history.Load(dir)
		if err != nil {
			t.Fatal(err)
		}
		if last := all[len(all)-1]; last.Op != history.Await || last.Phase != history.Unknown {
			t.Errorf("what is recorded last is %+v, want that nobody was let go", last)
		}
	})
}
