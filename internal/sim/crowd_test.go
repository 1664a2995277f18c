package sim

import (
	"bytes"
	"flag"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/internal/longrun"
	"github.com/interlock-go/interlock/memlock"
)

var draws = flag.Bool("sim.draw", false, "draw the picture of crowds again, in a long run")

const (
	crowdHold  = 10 * time.Millisecond // how long each holds the lock
	crowdApart = time.Millisecond      // how far apart they come, on average
	// mostMessages bounds what a grant costs by redislock's pace however many wait: a request, a release, a claim, and
	// hold for hold two messages in five milliseconds of pause, until the pause can grow no more.
	mostMessages = 9
)

// crowdCost is what a crowd cost of that many clients that all want one lock, each once.
type crowdCost struct {
	clients    int
	median     time.Duration // from the call of Lock to its return
	handover   time.Duration // from an Unlock to the return of the next Lock
	messages   float64       // for each grant
	serverBusy float64       // a part of the time
}

// crowds simulates crowds of growing size. Each client is a process of its own, so nothing passes on inside of one.
func crowds(t *testing.T, p pace, sizes []int) (costs []crowdCost) {
	t.Helper()
	for _, n := range sizes {
		synctest.Test(t, func(t *testing.T) { costs = append(costs, simulateCrowd(t, p, n)) })
	}
	return costs
}

func simulateCrowd(t *testing.T, p pace, n int) crowdCost {
	s := &crowdServer{engine: memlock.New(nil), pace: p}
	defer func() { noError(t, s.engine.Close()) }()
	var inside atomic.Int32
	var mu sync.Mutex // guards waits and granted
	var waits []time.Duration
	var granted []time.Time
	var all sync.WaitGroup
	begin := time.Now()
	for i := range n {
		all.Go(func() {
			rng := rand.New(rand.NewPCG(2, uint64(i)))
			time.Sleep(between(rng, 0, time.Duration(n)*crowdApart))
			c, err := interlock.New(s.link(i), nil)
			noError(t, err)
			asked := time.Now()
			l, err := c.Lock(t.Context(), "one")
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			waits, granted = append(waits, time.Since(asked)), append(granted, time.Now())
			mu.Unlock()
			if inside.Add(1) > 1 {
				t.Error("two are inside at once")
			}
			time.Sleep(crowdHold)
			inside.Add(-1)
			noError(t, l.Unlock(t.Context()))
			noError(t, c.Close())
		})
	}
	all.Wait()
	if len(granted) != n {
		t.Fatalf("%d of %d were served", len(granted), n)
	}
	slices.Sort(waits)
	first, last := slices.MinFunc(granted, time.Time.Compare), slices.MaxFunc(granted, time.Time.Compare)
	return crowdCost{
		clients: n, median: waits[n/2], handover: last.Sub(first)/time.Duration(n-1) - crowdHold,
		messages: float64(s.messages) / float64(n), serverBusy: float64(s.busy) / float64(time.Since(begin)),
	}
}

func noError(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}

// picture is what the full size gives. To draw it again:
//
//	INTERLOCK_LONG=1 go test ./internal/sim -run Crowd -sim.draw
const picture = "../../docs/simulated-growth.svg"

// TestCrowd_HoweverManyWait_AGrantCostsTheSame simulates up to 1,000 clients, or 10,000 in a long run without the race
// detector, which takes some ten seconds.
func TestCrowd_HoweverManyWait_AGrantCostsTheSame(t *testing.T) {
	full := longrun.On() && crowdsInFull
	sizes := []int{10, 100, 1_000}
	if full {
		sizes = []int{10, 30, 100, 300, 1_000, 3_000, 10_000}
	}
	paced, steady := crowds(t, ofRedislock, sizes), crowds(t, eachSecond, sizes)
	for i := range paced {
		t.Logf("%+v, with one beat a second %+v", paced[i], steady[i])
	}
	few, most, control := paced[0], paced[len(paced)-1], steady[len(steady)-1]
	if most.messages > mostMessages {
		t.Errorf("of %d clients each grant costs %.1f messages, want at most %d",
			most.clients, most.messages, mostMessages)
	}
	if float64(most.handover) > 1.3*float64(few.handover) {
		t.Errorf("a hand-over takes %v among %d and %v among %d, want at most 1.3 times as long",
			most.handover, most.clients, few.handover, few.clients)
	}
	if most.clients >= 1_000 && control.messages < 1.2*most.messages {
		t.Errorf("with one beat a second a grant costs %.1f messages: the pace is good for nothing", control.messages)
	}
	if full {
		comparePicture(t, drawCrowds(paced, steady))
	}
}

// comparePicture writes the picture, if that is asked for, or else says when it is not what the simulation gives.
func comparePicture(t *testing.T, drawn []byte) {
	t.Helper()
	if *draws {
		noError(t, os.WriteFile(picture, drawn, 0o644))
		return
	}
	stored, err := os.ReadFile(picture)
	noError(t, err)
	if !bytes.Equal(stored, drawn) {
		t.Errorf("%s is not what the simulation gives: draw it again with -sim.draw", picture)
	}
}
