package cronlock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/adapters/cronlock"
	"github.com/interlock-go/interlock/memlock"
)

func open(t *testing.T, url string) *interlock.Client {
	t.Helper()
	c, err := interlock.Open(t.Context(), url, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// outcome is what done was told.
type outcome struct {
	ran bool
	err error
}

func TestFunc_RunsOnOneHostAndSkipsOnTheOthers(t *testing.T) {
	url := "mem://" + t.Name()
	here, there := open(t, url), open(t, url)
	var skipped outcome
	told := false
	elsewhere := cronlock.Func(t.Context(), there.Mutex("job", nil),
		func(context.Context) error { t.Error("it runs twice at once"); return nil },
		func(ran bool, err error) { told, skipped = true, outcome{ran, err} })
	var first outcome
	cronlock.Func(t.Context(), here.Mutex("job", nil), func(ctx context.Context) error {
		interlock.AssertHeld(ctx, "job")
		elsewhere()
		return nil
	}, func(ran bool, err error) { first = outcome{ran, err} })()
	if !told || skipped != (outcome{}) {
		t.Errorf("the other host's run: told %t, %+v; want a skip without an error", told, skipped)
	}
	if first != (outcome{ran: true}) {
		t.Errorf("the run: %+v; want that it ran without an error", first)
	}
	again := false
	cronlock.Func(t.Context(), there.Mutex("job", nil), func(context.Context) error { again = true; return nil }, nil)()
	if !again {
		t.Error("the lock was not released after the run")
	}
}

// TestFunc_WithMinHold_SkipsTheRunOfAHostWhoseClockIsLate: the job takes no time, and the other
// host comes a second later.
func TestFunc_WithMinHold_SkipsTheRunOfAHostWhoseClockIsLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := interlock.New(memlock.New(nil), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		runs := 0
		m := c.Mutex("job", &interlock.LockOptions{MinHold: 10 * time.Second})
		work := func(context.Context) error { runs++; return nil }
		run := cronlock.Func(t.Context(), m, work, func(_ bool, err error) {
			if err != nil {
				t.Error(err)
			}
		})
		run()
		time.Sleep(time.Second)
		if run(); runs != 1 {
			t.Errorf("the job has run %d times within its MinHold", runs)
		}
		time.Sleep(10 * time.Second)
		if run(); runs != 2 {
			t.Errorf("the job has run %d times, not again when the MinHold was over", runs)
		}
	})
}

func TestFunc_TellsTheJobsError_AndThatTheLockCannotBeAskedFor(t *testing.T) {
	c := open(t, "mem://"+t.Name())
	broken := errors.New("it does not work")
	var got outcome
	run := cronlock.Func(t.Context(), c.Mutex("job", nil), func(context.Context) error { return broken },
		func(ran bool, err error) { got = outcome{ran, err} })
	if run(); !got.ran || !errors.Is(got.err, broken) {
		t.Errorf("the run: %+v; want that it ran and its error", got)
	}
	_ = c.Close()
	if run(); got.ran || !errors.Is(got.err, interlock.ErrClosed) {
		t.Errorf("after Close: %+v; want that it did not run, and ErrClosed", got)
	}
}

func TestFunc_OfAJobThatPanics_ReleasesTheLock(t *testing.T) {
	c := open(t, "mem://"+t.Name())
	m := c.Mutex("job", nil)
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the scheduler does not hear of the panic")
			}
		}()
		cronlock.Func(t.Context(), m, func(context.Context) error { panic("at work") }, nil)()
	}()
	if l, err := m.TryLock(t.Context()); err != nil {
		t.Errorf("the lock is still held: %v", err)
	} else if err := l.Unlock(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestFunc_WithoutAJob_Panics(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a job that is nil is noticed only at three in the morning")
		}
	}()
	cronlock.Func(t.Context(), open(t, "mem://"+t.Name()).Mutex("job", nil), nil, nil)
}
