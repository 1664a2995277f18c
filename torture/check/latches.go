package check

import (
	"fmt"

	"github.com/interlock-go/interlock/torture/history"
	"github.com/interlock-go/interlock/torture/worker"
)

// checkLatches looks at the latches: each was counted down by one goroutine, and waited for by another.
func (r *record) checkLatches(v *Verdict) {
	type count struct {
		calls, oks int
		unknown    bool // an answer is missing, so what comes after says nothing
	}
	counts := map[string]*count{}
	for _, e := range r.events {
		if e.Op != history.CountDown && e.Op != history.Await {
			continue
		}
		c := counts[e.Name]
		if c == nil {
			c = &count{}
			counts[e.Name] = c
		}
		says := fmt.Sprintf("%s, process %d, goroutine %d", e.Name, e.Proc, e.Gor)
		switch {
		case e.Op == history.CountDown && e.Phase == history.Call:
			c.calls++
		case e.Op == history.CountDown && e.Phase == history.OK:
			v.Of++
			if c.oks++; !c.unknown && e.Weight != worker.LatchCount-c.oks {
				v.fault("%s: %d left after %d of %d", says, e.Weight, c.oks, worker.LatchCount)
			}
		case e.Op == history.CountDown:
			c.unknown = true
		case e.Phase == history.OK && c.calls < worker.LatchCount:
			v.fault("%s: somebody was let go after %d of %d", says, c.calls, worker.LatchCount)
		case e.Phase != history.OK && c.oks == worker.LatchCount:
			v.fault("%s: nobody was let go after the last: %s", says, e.Err)
		}
	}
}
