package enginekit

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestPause_LastsForItsTime_OrUntilItsContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		begin := time.Now()
		if !Pause(ctx, time.Second) || time.Since(begin) != time.Second {
			t.Errorf("it lasted %v, want 1s", time.Since(begin))
		}
		if !Pause(ctx, -time.Second) || time.Since(begin) != time.Second {
			t.Error("a pause of no length waited")
		}
		if Pause(ctx, time.Hour) || time.Since(begin) != time.Minute {
			t.Errorf("it ended after %v, want when its context did", time.Since(begin))
		}
	})
}
