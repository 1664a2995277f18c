package check

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/interlock-go/interlock/torture/history"
	"github.com/interlock-go/interlock/torture/worker"
)

// waiting is one Wait for a condition.
type waiting struct {
	proc, gor int
	gave      uint64 // the token of the hold that was given up
	call, end history.Instant
	woken     uint64 // the token of the new hold; 0 if there was none
}

// signal is one Signal or Broadcast, by the holder of the mutex.
type signal struct {
	token    uint64
	call, ok history.Instant
	all      bool
}

// checkConditions looks at the waiters for the condition of a mutex. A waiter has given the mutex up, and one that
// signals has it, so the tokens say who came first, whatever the clock of each says.
func (r *record) checkConditions(v *Verdict, f *Figures) {
	waits, signals, sure := conditions(r.events)
	for _, w := range waits {
		if w.woken == 0 {
			continue
		}
		v.Of++
		f.Wakes++
		if w.woken <= w.gave {
			v.fault("process %d, goroutine %d: it gave up token %d and has %d after the wait", w.proc, w.gor, w.gave,
				w.woken)
		}
	}
	if !r.calm() { // else a place may be lost, and with it a signal
		return
	}
	r.checkSignals(v, waits, signals)
	if sure {
		checkWakes(v, waits, signals)
	}
}

// conditions lists the waits that ended, and the signals that were answered, in the order of their tokens. It reports
// false if there were others.
func conditions(events []history.Event) (waits []*waiting, signals []signal, sure bool) {
	open, called := map[place]*waiting{}, map[place]history.Instant{}
	sure = true
	for _, e := range events {
		at := place{proc: e.Proc, gor: e.Gor, seq: e.Seq}
		w := open[at]
		switch {
		case e.Op == history.Wait && e.Phase == history.Call:
			open[at] = &waiting{proc: e.Proc, gor: e.Gor, gave: e.Token, call: e.At}
		case e.Op == history.Wait && w != nil:
			w.end = e.At
			if e.Phase == history.OK {
				w.woken = e.Token
			}
			waits = append(waits, w)
			delete(open, at)
		case e.Op != history.Signal && e.Op != history.Broadcast:
		case e.Phase == history.Call:
			called[at] = e.At
		case e.Phase == history.OK:
			signals = append(signals, signal{e.Token, called[at], e.At, e.Op == history.Broadcast})
		default:
			sure = false
		}
	}
	slices.SortFunc(waits, func(a, b *waiting) int { return cmp.Compare(a.gave, b.gave) })
	slices.SortFunc(signals, func(a, b signal) int { return cmp.Compare(a.token, b.token) })
	return waits, signals, sure
}

// checkSignals finds who waited in vain. Signals that came while it waited, and long before its time was over, have
// woken those who had waited for longer: so there cannot have been more of them than of those.
func (r *record) checkSignals(v *Verdict, waits []*waiting, signals []signal) {
	enough := 2 * r.about.Lease // for a woken waiter to have the mutex again
	for i, w := range waits {
		if v.Of++; w.woken != 0 {
			continue
		}
		var came []signal
		for _, s := range signals {
			if s.token > w.gave && s.ok.Add(enough) < w.end {
				came = append(came, s)
			}
		}
		if len(came) == 0 || r.heldUp(w.call, w.end) {
			continue
		}
		before := 0
		for _, o := range waits[:i] {
			if o.mayHaveHad(came, enough) {
				before++
			}
		}
		all := slices.ContainsFunc(came, func(s signal) bool { return s.all })
		if all || len(came) > before {
			v.fault(
				"process %d, goroutine %d: it waited in vain since it gave up token %d: %d signals came, and %d had "+
					"waited for longer",
				w.proc, w.gor, w.gave, len(came), before)
		}
	}
}

// mayHaveHad reports whether one of the signals may have been for w: it was woken, or its time was over while it was.
func (w *waiting) mayHaveHad(came []signal, enough time.Duration) bool {
	if w.woken != 0 {
		return w.woken > came[0].token
	}
	return slices.ContainsFunc(came, func(s signal) bool { return s.call < w.end && w.end < s.ok.Add(enough) })
}

// checkWakes finds who was woken by nobody: each signal wakes one, of those who waited by then the one who had
// the mutex first after it.
func checkWakes(v *Verdict, waits []*waiting, signals []signal) {
	left := slices.DeleteFunc(slices.Clone(waits), func(w *waiting) bool { return w.woken == 0 })
	slices.SortFunc(left, func(a, b *waiting) int { return cmp.Compare(a.woken, b.woken) })
	for _, s := range signals {
		one := false
		left = slices.DeleteFunc(left, func(w *waiting) bool {
			woken := w.gave < s.token && s.token < w.woken && (s.all || !one)
			one = one || woken
			return woken
		})
	}
	for _, w := range left {
		v.fault("process %d, goroutine %d: it was woken by nobody after it gave up token %d", w.proc, w.gor, w.gave)
	}
}

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
