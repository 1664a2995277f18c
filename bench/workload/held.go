package workload

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"time"

	"github.com/interlock-go/interlock"
)

// HeldResult is what many locks held at once cost.
type HeldResult struct {
	Bytes      float64 // of heap for each lock, after a collection: all that the process keeps because it is held
	Goroutines float64 // for each lock
	Batches    int64   // calls in which the renewals travelled
	Renewed    int64
	Lost       int
}

// patience bounds the wait for renewals, in leases of the job: by then every lock that was not renewed is lost.
const patience = 4

// hold takes the job's locks, sees them renewed as often as it says, and gives them back.
func hold(ctx context.Context, j *Job) (*part, error) {
	engine, err := engineFor(j)
	if err != nil {
		return nil, err
	}
	client, err := interlock.New(engine, &interlock.Options{Lease: j.Lease})
	if err != nil {
		return nil, err
	}
	names, leases := make([]string, j.Locks), make([]*interlock.Lease, j.Locks)
	for i := range names {
		names[i] = "order:" + strconv.Itoa(i)
	}
	bytes, goroutines := footprint()
	for i, name := range names {
		if leases[i], err = client.Lock(ctx, name); err != nil {
			return nil, fmt.Errorf("lock %d of %d: %w", i+1, j.Locks, err)
		}
	}
	engine.await(time.Duration(j.Renewals+patience) * j.Lease)
	r := &HeldResult{Batches: engine.batches.Load(), Renewed: engine.renewed.Load()}
	bytesAfter, goroutinesAfter := footprint()
	r.Bytes = (bytesAfter - bytes) / float64(j.Locks)
	r.Goroutines = (goroutinesAfter - goroutines) / float64(j.Locks)
	for _, l := range leases {
		if err := l.Unlock(ctx); errors.Is(err, interlock.ErrLost) {
			r.Lost++
		} else if err != nil {
			return nil, err
		}
	}
	runtime.KeepAlive(names)
	return &part{Held: r}, errors.Join(client.Close(), engine.Close())
}

// footprint is the heap in use after a collection, and how many goroutines there are. The second collection frees what
// the first one only took out of pools.
func footprint() (bytes, goroutines float64) {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc), float64(runtime.NumGoroutine())
}
