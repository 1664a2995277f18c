package worker

import (
	"context"
	"fmt"
	"time"

	"github.com/interlock-go/interlock/enginekit"
	"github.com/interlock-go/interlock/torture/history"
)

// LatchCount is from how far latches are counted down.
const LatchCount = 3

// countDown sets a latch that nobody else knows and counts it down, while another goroutine of this process waits for
// zero: it must count each once, whatever gets lost on the way, and nobody may be let go before. They share the
// process's client, because a second one would have connections of its own, and under the fault one-connection each
// takes the other's place.
func (w *worker) countDown(ctx context.Context) {
	name := fmt.Sprintf("latch-%d-%d-%d-%d", w.j.Proc, w.j.Life, w.gor, w.seq)
	latch := w.locks.Latch(name)
	patient, cancel := context.WithTimeout(ctx, w.j.Patience)
	defer cancel()
	if _, err := latch.Set(patient, LatchCount); err != nil {
		return // whether it was set is not known
	}
	waiting, stop := context.WithCancel(ctx)
	defer stop()
	waited := make(chan struct{})
	go func() { // ends with waiting
		defer close(waited)
		if err := latch.Wait(waiting); ctx.Err() == nil { // else the work is over
			w.counted(history.Await, name, 0, err)
		}
	}()
	for i := range LatchCount {
		enginekit.Pause(ctx, time.Duration(w.dice.Int64N(int64(w.j.Hold)+1)))
		w.log.Write(
			history.Event{
				Proc: w.j.Proc, Gor: w.gor, Seq: w.seq, Op: history.CountDown, Phase: history.Call, Name: name,
			})
		left, err := latch.CountDown(patient)
		w.counted(history.CountDown, name, int(left), err)
		// it is not known to be counted, or somebody has forgotten a count
		if last := i == LatchCount-1; err != nil || last && left > 0 {
			stop() // nobody may ever be let go
			break
		}
	}
	defer time.AfterFunc(w.j.Patience, stop).Stop()
	<-waited
}

// counted records what an operation on a latch has said.
func (w *worker) counted(op history.Op, name string, left int, err error) {
	e := history.Event{Proc: w.j.Proc, Gor: w.gor, Seq: w.seq, Op: op, Phase: history.OK, Name: name, Weight: left}
	if err != nil {
		e.Phase, e.Err = history.Unknown, err.Error()
	}
	w.log.Write(e)
}
