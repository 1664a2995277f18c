// Package cronlock runs scheduled jobs on one host of many: the job runs where its lock is free, and is skipped
// elsewhere. It fits every scheduler that takes a function, such as the package github.com/robfig/cron:
//
//	m := locks.Mutex("nightly", &interlock.LockOptions{MinHold: time.Minute})
//	c.AddFunc("0 3 * * *", cronlock.Func(ctx, m, nightly, nil))
//
// It needs the standard library only. For gocron see the module adapters/gocronlock.
//
// # Clocks
//
// The lock keeps two runs from overlapping. By itself it does not keep a host whose clock is late from running a short
// job again after another has finished it: give the mutex a MinHold (interlock.LockOptions) longer than the clocks may
// differ, and shorter than the time between two runs.
package cronlock

import (
	"context"

	"github.com/interlock-go/interlock"
)

// Func returns a function for a scheduler that runs work under m if m is free, and skips it if another owner holds m or
// waits for it. It does not wait. work's context ends when ctx does and the moment the lock is lost; its cause says
// which. The function may be called from several goroutines at once: one runs, the others skip.
//
// ctx is that of the program: when it has ended, nothing runs any more. An owner in ctx re-enters, so pass one without.
//
// done, if not nil, is told of each run: whether work was run, and its error, joined with the *interlock.LostError if
// the lock was lost meanwhile, or why the lock could not be asked for. A skipped run is false and nil. A panic of work
// goes on to the scheduler after the lock was released, and done is not called.
//
// A run costs what TryDo costs: on Redis one round trip to skip, and two around the work.
func Func(
	ctx context.Context, m *interlock.Mutex, work func(ctx context.Context) error, done func(ran bool, err error),
) func() {
	if m == nil || work == nil {
		panic("cronlock: Func needs a mutex and the work to be done")
	}
	return func() {
		ran, err := m.TryDo(ctx, work)
		if done != nil {
			done(ran, err)
		}
	}
}
