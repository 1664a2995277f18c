package check

import (
	"cmp"
	"testing"
	"time"

	"github.com/interlock-go/interlock/torture/history"
)

// A hold that is lost because the machine did not run somebody who had to do with it is not lost by interlock, whether
// that was once or several times, and in a client or in the process with the proxies.
func TestALoss_OfAStarvedProcess_IsNoFault(t *testing.T) {
	const lost = 2 * second
	for _, c := range []struct {
		name   string
		lags   []history.Event
		faults int
	}{
		{"never", nil, 1},
		{"once", []history.Event{{Proc: 0, At: lost - 30*ms, Took: 170 * time.Millisecond}}, 0},
		{"for too short a time", []history.Event{{Proc: 0, At: lost - 30*ms, Took: 150 * time.Millisecond}}, 1},
		{"again and again", []history.Event{
			{Proc: -1, At: lost - 30*ms, Took: 90 * time.Millisecond},
			{Proc: -1, At: lost - 300*ms, Took: 90 * time.Millisecond},
		}, 0},
		{"once each", []history.Event{
			{Proc: 1, At: lost - 30*ms, Took: 90 * time.Millisecond},
			{Proc: -1, At: lost - 300*ms, Took: 90 * time.Millisecond},
		}, 1},
		{"long before", []history.Event{{Proc: 0, At: lost - second, Took: 300 * time.Millisecond}}, 1},
		{"never, but the disk was slow", []history.Event{
			{Op: history.Disk, At: lost - 500*ms, Took: 300 * time.Millisecond},
			{Op: history.Disk, At: lost - 30*ms, Took: 300 * time.Millisecond},
		}, 0},
		{
			"never, and the disk was slow for a moment",
			[]history.Event{{Op: history.Disk, At: lost - 30*ms, Took: 300 * time.Millisecond}},
			1,
		},
	} {
		s := sound()
		s.add(1, lost, history.Event{Seq: 1, Op: history.Lost, Phase: history.OK, Name: "a", Token: 101})
		for _, e := range c.lags {
			e.Op = cmp.Or(e.Op, history.Lag)
			s.add(e.Proc, e.At, e)
		}
		if v := s.judge(t).Find("K6"); len(v.Faults) != c.faults {
			t.Errorf("without the processor %s: %v", c.name, v)
		}
	}
}
