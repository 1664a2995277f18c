package workload

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/interlock-go/interlock/bench/engined"
	"github.com/interlock-go/interlock/bench/peer"
)

// KeepResult is what very many locks on a server cost while they are held and renewed.
type KeepResult struct {
	Commands   float64 // that clients sent in a second, without pings
	Bytes      float64 // of heap and stacks for each hold, after a collection
	ServerMem  float64 // bytes of the server for each hold
	Goroutines float64 // for each hold
	CPU        float64 // of this process, as a part of one processor's time
	ServerCPU  float64 // of the server, likewise; zero if it is not known
	Lost       int
	Missing    int // holds that were not to be had
}

const (
	// taking is how many holds are taken, and released, at a time; where there are very many, one of so many.
	taking      = 16
	takingPart  = 4_000
	takePatient = 5 * time.Second // for each of them
)

// keep takes the job's locks, holds them for some leases, and gives them back.
func keep(ctx context.Context, p peer.Peer, j *Job, sent []string) (result *part, err error) {
	keeper, ok := p.(peer.Keeper)
	if !ok {
		return nil, fmt.Errorf("%s cannot hold many locks", j.Peer)
	}
	meter := engined.NewMeter(j.Redis, sent)
	defer func() { err = errors.Join(err, meter.Close()) }()
	if _, err := meter.Count(ctx); err != nil { // opens its connection, which is not the peer's
		return nil, err
	}
	// Connections and buffers of the client are there before it counts.
	atATime := max(taking, j.Locks/takingPart)
	warm := takeAll(ctx, keeper, named("warm:", 4*atATime), atATime)
	if warm.drop(ctx, atATime); warm.err() != nil {
		return nil, warm.err()
	}
	names := named("order:", j.Locks)
	bytes, goroutines := withStacks()
	memory, err := meter.Memory(ctx)
	if err != nil {
		return nil, err
	}
	holds := takeAll(ctx, keeper, names, atATime)
	if err := holds.err(); err != nil {
		return nil, err
	}
	r := &KeepResult{Missing: int(holds.missing.Load())}
	settled := j.Settle
	if settled == 0 {
		settled = j.Lease
	}
	time.Sleep(settled) // until all are renewed at their usual times
	b := startCPUUsage(j.PIDs)
	counted, err := rate(ctx, meter, time.Duration(j.Renewals)*j.Lease)
	if err != nil {
		return nil, err
	}
	r.Commands = counted.commands
	r.CPU, r.ServerCPU = b.shares()
	bytesAfter, goroutinesAfter := withStacks()
	r.Bytes = (bytesAfter - bytes) / float64(j.Locks)
	r.Goroutines = (goroutinesAfter - goroutines) / float64(j.Locks)
	memoryAfter, err := meter.Memory(ctx)
	if err != nil {
		return nil, err
	}
	r.ServerMem = (memoryAfter - memory) / float64(j.Locks)
	holds.drop(ctx, atATime)
	runtime.KeepAlive(names)
	r.Lost = int(holds.lost.Load())
	return &part{Keep: r}, holds.err()
}

func named(prefix string, n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = prefix + strconv.Itoa(i)
	}
	return names
}

// keepers are holds under way.
type keepers struct {
	each          []peer.Hold // nil for one that was not to be had
	missing, lost atomic.Int64
	failed        atomic.Pointer[error]
}

func (k *keepers) err() error {
	if e := k.failed.Load(); e != nil {
		return *e
	}
	return nil
}

// takeAll takes one hold for each name.
func takeAll(ctx context.Context, keeper peer.Keeper, names []string, atATime int) *keepers {
	k := &keepers{each: make([]peer.Hold, len(names))}
	inParallel(atATime, len(names), func(i int) {
		attempt, end := context.WithCancel(ctx)
		bound := time.AfterFunc(takePatient, end)
		hold, err := keeper.Hold(attempt, names[i])
		switch {
		case !bound.Stop():
			k.missing.Add(1) // its lease may have ended meanwhile, so it is not asked any further
		case err != nil:
			k.failed.Store(&err)
		default:
			k.each[i] = hold
		}
		end()
	})
	return k
}

// drop gives them all back.
func (k *keepers) drop(ctx context.Context, atATime int) {
	inParallel(atATime, len(k.each), func(i int) {
		if k.each[i] == nil {
			return
		}
		if err := k.each[i].Release(ctx); errors.Is(err, peer.ErrLost) {
			k.lost.Add(1)
		} else if err != nil {
			k.failed.Store(&err)
		}
	})
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

// withStacks is footprint with the memory of goroutines: some libraries keep one or more for each hold. It is the least
// of some looks: what is made for a renewal that is under way is not what a hold costs.
func withStacks() (bytes, goroutines float64) {
	const looks, pause = 5, 100 * time.Millisecond
	bytes = math.Inf(1)
	for range looks {
		time.Sleep(pause)
		heap, n := footprint()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		bytes, goroutines = min(bytes, heap+float64(m.StackInuse)), n
	}
	return bytes, goroutines
}
