package drivertest

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// The promise of exclusion: a lock has one holder, whoever asks and however many at once.

func exclusion() []behaviour {
	return []behaviour{
		{sentence: "a held lock is refused to a try, and the refusal takes nothing", run: tryOfHeldIsRefused},
		{sentence: "a waiter is let in by the release and not before", run: waiterIsLetInByRelease},
		{sentence: "of many tries at once one is granted", run: oneOfManyTries},
		{sentence: "a crowd of clients is never inside together", run: crowdIsNeverInsideTogether},
	}
}

// A refused try must leave nothing behind, so the lock is tried several times and must be free at once after the
// release. The same client is refused too: holds belong to requests, not to connections.
func tryOfHeldIsRefused(tr *trial) {
	a, b := tr.client(), tr.client()
	h := a.take(a.ask(tr.mutex()))
	for range 3 {
		b.findsHeld(tr.mutex(), "while another client holds it")
	}
	a.findsHeld(tr.mutex(), "while the same client holds it for somebody else")
	h.release()
	b.findsFree(tr.mutex(), "after the release")
}

// The wait is watched while the lock is held: an engine that lets in too early would otherwise pass.
func waiterIsLetInByRelease(tr *trial) {
	a, b := tr.client(), tr.client()
	h := a.take(a.ask(tr.mutex()))
	w := b.queue(b.ask(tr.mutex()))
	w.stillWaits("while the lock is held")
	h.release()
	w.granted("after the release").release()
}

// Tries start together from several clients, which catches an engine that looks and then takes in two steps.
func oneOfManyTries(tr *trial) {
	clients := []*client{tr.client(), tr.client(), tr.client()}
	for range 10 {
		var granted atomic.Int32
		var winner atomic.Pointer[hold]
		var all sync.WaitGroup
		start := make(chan struct{})
		for i := range 6 {
			c := clients[i%len(clients)]
			all.Go(func() {
				<-start
				h, err := c.try(tr.mutex())
				switch {
				case err == nil:
					granted.Add(1)
					winner.Store(h)
				// Errorf and not Fatalf, which only the behaviour's own goroutine may call.
				case !errors.Is(err, driver.ErrHeld):
					tr.Errorf("a try says: %v", err)
				}
			})
		}
		close(start)
		all.Wait()
		if n := granted.Load(); n != 1 {
			tr.Fatalf("of 6 tries at once %d were granted, want 1", n)
		}
		winner.Load().release()
	}
}

// Each worker counts itself in and out. Two at once is a fault of the lock, whatever the engine has answered.
func crowdIsNeverInsideTogether(tr *trial) {
	const workers, rounds = 9, 5
	clients := []*client{tr.client(), tr.client(), tr.client()}
	var inside, visits, crowds atomic.Int32
	var all sync.WaitGroup
	for i := range workers {
		c := clients[i%len(clients)]
		all.Go(func() {
			for range rounds {
				h, err := c.acquire(c.ask(tr.mutex()))
				if err != nil {
					tr.Errorf("%s: acquire: %v", c.name, err)
					return
				}
				if inside.Add(1) != 1 {
					crowds.Add(1)
				}
				visits.Add(1)
				tr.pass(time.Millisecond) // so that the others come and wait
				inside.Add(-1)
				if err := c.endUntilKnown(tr.mutex(), h.r.ID); err != nil {
					tr.Errorf("%s: release: %v", c.name, err)
				}
			}
		})
	}
	all.Wait()
	if n := crowds.Load(); n > 0 {
		tr.Errorf("%d of %d grants were made while another client was inside", n, visits.Load())
	}
	if n := visits.Load(); !tr.Failed() && n != workers*rounds {
		tr.Errorf("%d visits, want %d", n, workers*rounds)
	}
}
