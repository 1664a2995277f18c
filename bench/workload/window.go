package workload

import (
	"sync/atomic"
	"time"
)

// The phases of a measurement. The same goes on in all of them; it counts in one. Warming up and cooling down see to it
// that nobody is alone with the lock while others are still starting or have ended.
const (
	warming int32 = iota
	counting
	cooling
	over
)

// window is the time that counts. Workers look at phase, which costs them less than to look at the clock.
type window struct {
	phase      atomic.Int32
	began, end time.Time // written before the phase that follows is stored
	cpu        float64   // nanoseconds that this process was running in between
}

// run goes through the phases, with counting from start on.
func (w *window) run(start time.Time, d, cool time.Duration) {
	time.Sleep(time.Until(start))
	before := ownCPU()
	w.began = time.Now()
	w.phase.Store(counting)
	time.Sleep(d)
	w.end = time.Now()
	w.cpu = ownCPU() - before
	w.phase.Store(cooling)
	time.Sleep(cool)
	w.phase.Store(over)
}

// lasted is how long counting was. It must be asked when that is over.
func (w *window) lasted() time.Duration { return w.end.Sub(w.began) }
