package worker

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestBound_SaysHowLongAgoItEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, end := within(t.Context(), time.Second)
		defer end()
		time.Sleep(time.Second - 1) // virtual
		if late := b.late(); late != 0 {
			t.Errorf("%v late before the end", late)
		}
		<-b.Done()
		synctest.Wait()
		time.Sleep(60 * time.Millisecond) // virtual
		if late := b.late(); late != 60*time.Millisecond {
			t.Errorf("%v late, want 60ms", late)
		}
	})
}

func TestBound_BeforeAnybodyElseWasTold_IsNotLateAndHasEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, end := within(t.Context(), time.Second)
		defer end()
		<-b.Done()
		synctest.Wait()
		b.told.Store(nil)                 // as if the other goroutine had not run yet
		time.Sleep(60 * time.Millisecond) // virtual
		if late := b.late(); late != atOnce {
			t.Errorf("%v late, want %v", late, time.Duration(atOnce))
		}
	})
}

func TestBound_ThatEndsWithItsParent_IsNotLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		parent, cancel := context.WithCancel(t.Context())
		b, end := within(parent, time.Second)
		defer end()
		cancel()
		synctest.Wait()
		time.Sleep(60 * time.Millisecond) // virtual
		if late := b.late(); late != 0 {
			t.Errorf("%v late although everything ends", late)
		}
	})
}

// The end of a call is announced before it, and not when the call is over.
func TestEndedBy_AnnouncesTheEndBeforeIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var announced atomic.Int64
		announce := func() {
			time.Sleep(10 * time.Millisecond) // virtual
			announced.Add(1)
		}
		begun := time.Now()
		b, end := endedBy(t.Context(), time.Second, announce)
		<-b.Done()
		if took := time.Since(begun); took != 1010*time.Millisecond || announced.Load() != 1 {
			t.Errorf("it ended after %v, announced %d times", took, announced.Load())
		}
		synctest.Wait()
		time.Sleep(60 * time.Millisecond) // virtual
		if late := b.late(); late != 60*time.Millisecond {
			t.Errorf("%v late, want 60ms", late)
		}
		end()

		_, end = endedBy(t.Context(), time.Second, announce)
		end()
		time.Sleep(2 * time.Second) // virtual
		if announced.Load() != 1 {
			t.Error("the end of a call that was over is announced")
		}
	})
}
