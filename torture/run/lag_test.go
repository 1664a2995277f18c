package run

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestDuring_EndsInTime_AndHasNoDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		ctx, cancel := during(t.Context(), time.Second)
		defer cancel()
		if at, has := ctx.Deadline(); has {
			t.Errorf("it has the deadline %v, which a dial does not outlast", at)
		}
		<-ctx.Done()
		if d := time.Since(begun); d != time.Second {
			t.Errorf("ended after %v", d)
		}
	})
}
