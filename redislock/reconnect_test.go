package redislock

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// Renewals that were sent when a connection broke would go to a server that is away, and each would be reported.
func TestReconnections_AreToldWhenThereIsSomebodyToAsk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &puppet{begin: time.Now(), listen: -1}
		p.answer = func(*Call) Reply { return Reply{Err: errors.New("nothing is asked for")} }
		d, err := start(context.Background(), p, &Options{Check: CheckNone})
		if err != nil {
			t.Fatal(err)
		}
		var told atomic.Int64
		stop := d.OnReconnect(func() { told.Add(1) })
		want := func(when string, want int64) {
			t.Helper()
			time.Sleep(reconnectPause)
			synctest.Wait()
			if got := told.Swap(0); got != want {
				t.Errorf("%s: told %d times, want %d", when, got, want)
			}
		}
		p.handler.Dropped(1)
		time.Sleep(time.Minute)
		want("while the server is away", 0)
		p.handler.Resumed(1)
		want("when it is back", 1)
		for l := range Link(5) {
			p.handler.Resumed(l)
		}
		want("of several connections at once", 1)
		stop()
		p.handler.Resumed(1)
		want("afterwards", 0)
		_ = d.Close()
		synctest.Wait()
	})
}
