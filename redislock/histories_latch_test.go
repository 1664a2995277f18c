package redislock

import (
	"context"
	"fmt"
	"testing"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/servers"
)

// latchStep is a change of a latch that may be made again.
type latchStep struct {
	sets bool
	call driver.LatchCall
}

// latch changes a latch on both sides, or repeats a change, and compares what they say.
func (h *history) latch(steps *[]latchStep) {
	h.t.Helper()
	name := string(rune('a' + h.draw(3)))
	s := latchStep{h.draw(3) == 0, driver.LatchCall{
		Key: driver.Key{Kind: driver.KindLatch, Name: name}, ID: fmt.Sprintf("l%d", len(*steps)),
		Count: 1 + int64(h.draw(5)), Horizon: longLease,
	}}
	if len(*steps) > 0 && h.draw(4) == 0 {
		s = (*steps)[h.draw(len(*steps))]
	}
	*steps = append(*steps, s)
	client := h.draw(clients)
	var said [sides]string
	_ = h.both(fmt.Sprintf("latch %+v by client %d", s, client), func(ctx context.Context, side int) error {
		l := h.engines[side][client].(driver.Latcher)
		var set bool
		var left int64
		var err error
		if s.sets {
			set, err = l.SetLatch(ctx, &s.call)
		} else {
			left, err = l.CountDown(ctx, &s.call)
		}
		if err != nil {
			return err
		}
		count, err := l.LatchCount(ctx, s.call.Key)
		said[side] = fmt.Sprintf("set %v, left %d, then it counts %d", set, left, count)
		return err
	})
	h.note("     %s", said[model])
	if said[model] != said[redis] {
		h.fail("%s says %s, %s says %s", sideNames[model], said[model], sideNames[redis], said[redis])
	}
}

func TestHistory_OfLatches_IsThatOfTheModel(t *testing.T) {
	s := servers.RedisServer(t, nil)
	eachHistory(t, func(t *testing.T, seed uint64) {
		h := newHistory(t, openPlain, seed, s)
		var steps []latchStep
		for range 3 * *historySteps {
			h.latch(&steps)
		}
	})
}
