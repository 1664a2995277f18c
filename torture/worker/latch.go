package worker

import (
	"context"
	"fmt"
	"time"

	"github.com/interlock-go/interlock/torture/history"
)

// LatchCount is from how far latches are counted down.
const LatchCount = 3

// countDown sets a latch that nobody else knows and counts it down, while another goroutine of this process waits for zero: it must
// count each once, whatever gets lost on the way, and nobody may be let go before. They share the process's client, because a second one
// would have connections of its own, and under the fault one-connection each takes the other's place.
func (h *hand) countDown(ctx context.Context) {
	name := fmt.Sprintf("latch-%d-%d-%d-%d", h.j.Proc, h.j.Life, h.gor, h.seq)
	latch := h.locks.Latch(name)
	patient, cancel := context.WithTimeout(ctx, h.j.Patience)
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
			h.counted(history.Await, name, 0, err)
		}
	}()
	for i := range LatchCount {
		pause(ctx, time.Duration(h.dice.Int64N(int64(h.j.Hold)+1)))
		h.log.Write(history.Event{Proc: h.j.Proc, Gor: h.gor, Seq: h.seq, Op: history.CountDown, Phase: history.Call, Name: name})
		left, err := latch.CountDown(patient)
		h.counted(history.CountDown, name, int(left), err)
		if last := i == LatchCount-1; err != nil || last && left > 0 { // it is not known to be counted, or somebody has forgotten a count
			stop() // nobody may ever be let go
			break
		}
	}
	defer time.AfterFunc(h.j.Patience, stop).Stop()
	<-waited
}

// counted records what an operation on a latch has said.
func (h *hand) counted(op history.Op, name string, left int, err error) {
	e := history.Event{Proc: h.j.Proc, Gor: h.gor, Seq: h.seq, Op: op, Phase: history.OK, Name: name, Weight: left}
	if err != nil {
		e.Phase, e.Err = history.Unknown, err.Error()
	}
	h.log.Write(e)
}
