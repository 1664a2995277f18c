package faulty_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/drivertest/faulty"
)

// slow is a driver whose Acquire tells that it waits, and is granted, once goOn is closed.
type slow struct {
	driver.Driver
	goOn chan struct{}
}

func (s slow) Acquire(_ context.Context, r *driver.Request) (driver.Grant, error) {
	<-s.goOn
	r.Waiting(&driver.HeldError{})
	return driver.Grant{}, nil
}

func TestResume_TellsBeforeItAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := slow{goOn: make(chan struct{})}
		d, c := faulty.Wrap(inner, 1)
		told := 0
		r := ask("a")
		r.Waiting = func(*driver.HeldError) { told++ }
		returned := make(chan int, 1)
		go func() {
			_, _ = d.Acquire(t.Context(), r) // slow has no errors
			returned <- told
		}()
		synctest.Wait()
		c.Pause()
		close(inner.goOn)
		synctest.Wait()
		if len(returned) > 0 {
			t.Fatal("a reply came through a server that hangs")
		}
		c.Resume()
		if <-returned != 1 {
			t.Error("Acquire returned before Waiting was called")
		}
	})
}
