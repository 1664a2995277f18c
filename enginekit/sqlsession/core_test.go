package sqlsession

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/enginekit"
)

// A driver whose opening was given up is not waited for, although the farewell to a server that hangs takes a while.
func TestCloseWithin_OnAServerThatHangs_ReturnsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newBusy(t)
		hangs, asked := make(chan struct{}), make(chan struct{})
		s.core.OnShared(Job{Run: func(*Conn) { close(asked); <-hangs }, Dead: func(err error) { t.Error(err) }})
		<-asked
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		begin := time.Now()
		enginekit.CloseWithin(ctx, s.core.Close)
		if took := time.Since(begin); took != time.Millisecond { // virtual
			t.Errorf("it took %v, want the millisecond of its context", took)
		}
		time.Sleep(time.Second) // virtual: the farewell is over
		close(hangs)
	})
}
