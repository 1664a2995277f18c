package workload

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/interlock-go/interlock/bench/peer"
	"github.com/interlock-go/interlock/bench/stats"
)

// tally is what one goroutine got.
type tally struct {
	counted int64 // acquisitions in the window
	all     int64
	cut     int
	wait    stats.Histogram
}

// grace is how long a waiter at the end may go on waiting. Then it is taken for hung.
const grace = time.Second

// bounds reports whether waits are ended that do not end by themselves. On a server there are libraries whose waiters
// sleep on; the kernel's do not, and know no context.
func bounds(j *Job) bool { return (j.Redis != "" || j.Server != "") && !j.Distinct }

func workersOf(p peer.Peer, j *Job) ([]peer.Worker, error) {
	workers := make([]peer.Worker, j.Goroutines)
	for i := range workers {
		name := peer.LockName
		if j.Distinct {
			name = "own:" + strconv.Itoa(i)
		}
		var err error
		if workers[i], err = p.Worker(name); err != nil {
			return nil, err
		}
	}
	return workers, nil
}

// contend lets the job's goroutines want the lock, and counts from start on.
func contend(ctx context.Context, p peer.Peer, j *Job, w *witness, start time.Time) (*part, error) {
	workers, err := workersOf(p, j)
	if err != nil {
		return nil, err
	}
	if j.Distinct {
		w = nil // each worker is alone with its lock
	}
	var win window
	tallies, errs := make([]tally, len(workers)), make([]error, len(workers)+1)
	var all sync.WaitGroup
	waiting, cut := context.WithCancel(ctx)
	defer cut()
	if !bounds(j) {
		waiting = ctx // one that can end costs those who look at it
	}
	all.Go(func() {
		win.run(start, j.Time, j.Warm)
		time.AfterFunc(grace, cut)
	})
	for i, worker := range workers {
		all.Go(func() { tallies[i], errs[i] = drive(ctx, waiting, worker, j, &win, w, i) })
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	sum := &part{Seconds: win.lasted().Seconds(), CPU: win.cpu}
	for i := range tallies {
		sum.Counts = append(sum.Counts, tallies[i].counted)
		sum.All += tallies[i].all
		sum.Cut += tallies[i].cut
		sum.Wait.Merge(&tallies[i].wait)
	}
	return sum, nil
}

// drive locks until the window is over, or its wait is ended. Of every j.Every acquisitions it times one, beginning at
// another one in each goroutine.
func drive(
	ctx, waiting context.Context, worker peer.Worker, j *Job, win *window, w *witness, first int,
) (tally, error) {
	var t tally
	every := max(j.Every, 1)
	for i := first; win.phase.Load() != over; i++ {
		var asked time.Time
		timed := i%every == 0
		if timed {
			asked = time.Now()
		}
		if err := worker.Lock(waiting); waiting.Err() != nil && err != nil {
			if timed {
				t.note(asked, over, win)
			}
			t.cut++
			return t, nil
		} else if err != nil {
			return t, err
		}
		phase := win.phase.Load()
		if timed {
			t.note(asked, phase, win)
		}
		if phase == counting {
			t.counted++
		}
		t.all++
		if err := w.inside(worker, j); err != nil {
			return t, err
		}
		if err := worker.Unlock(ctx); err != nil {
			return t, err
		}
	}
	return t, nil
}

// note counts a wait that ended in the phase given. One that went on past the end of the window counts as far as it was
// inside: without it, whoever starved for the whole window would not be seen at all.
func (t *tally) note(asked time.Time, phase int32, win *window) {
	switch {
	case phase == counting:
		t.wait.Add(time.Since(asked))
	case phase > counting && asked.Before(win.end):
		t.wait.Add(win.end.Sub(asked))
	}
}
