package redislock

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/internal/servers"
)

// TestScripts_AtRandom_KeepEverybodyOnce has waiters with short leases come, die, wait for signals and give up: a
// script that finds several of them over at once must not forget what it has done itself.
func TestScripts_AtRandom_KeepEverybodyOnce(t *testing.T) {
	t.Parallel()
	server := servers.RedisServer(t, nil)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	for i := range uint64(40) {
		r := &randomCrowd{stage: newStage(t, server, scriptsAsTheyAre()), random: rand.New(rand.NewPCG(seed, i))}
		r.name, r.bundles = "mutex:x", i%2 == 1
		for range 40 {
			r.step()
			r.check()
		}
		if r.err != nil {
			t.Fatalf("history %d: %v\n%s", i, r.err, strings.Join(r.log, "\n"))
		}
	}
}

// randomCrowd is who uses a lock.
type randomCrowd struct {
	*stage
	random *rand.Rand
	all    []*oneOfACrowd
	log    []string
}

type oneOfACrowd struct {
	ask
	gives string // the hold that it has given up for a wait, or empty
	over  bool
}

// comes returns somebody new, whose lease, place and claims are about as long as a history.
func (r *randomCrowd) comes(gives string) *oneOfACrowd {
	millis := func(from, below int) time.Duration {
		return time.Duration(from+r.random.IntN(below-from)) * time.Millisecond
	}
	x := &oneOfACrowd{gives: gives}
	x.id, x.claim, x.place, x.lease = fmt.Sprint("w", len(r.all)), millis(1, 8), millis(10, 60), millis(5, 30)
	if r.random.IntN(4) == 0 {
		x.channel = deaf
	}
	r.all = append(r.all, x)
	return x
}

// beats asks for what x waits for, once more or for the first time.
func (r *randomCrowd) beats(x *oneOfACrowd, again bool) string {
	if x.gives != "" {
		return r.waits(x.gives, x.ask, again)
	}
	return r.acquire(x.ask).verdict.String()
}

func (r *randomCrowd) step() {
	what, says := "", ""
	switch k := r.random.IntN(20); {
	case k < 3 || len(r.all) == 0:
		x := r.comes("")
		what, says = x.id+" acquires", r.beats(x, false)
	case k < 5:
		what, says = r.holderWaits()
	case k < 7:
		what, says = "signal", r.signal(fmt.Sprint("s", len(r.log)))
	case k < 10:
		what = "time"
		r.pass(time.Duration(r.random.IntN(12)) * time.Millisecond)
	default:
		what, says = r.goesOn(r.all[len(r.all)-1-r.random.IntN(min(5, len(r.all)))], k)
	}
	r.log = append(r.log, what+": "+says)
}

// holderWaits has the holder give the lock up for a wait, if there is one.
func (r *randomCrowd) holderWaits() (what, says string) {
	id, _, _ := strings.Cut(r.show(), " ")
	i := slices.IndexFunc(r.all, func(x *oneOfACrowd) bool { return x.id == id })
	if i < 0 {
		return "nobody", "holds"
	}
	x := r.comes(id)
	if says = r.beats(x, false); says == "C" {
		r.all[i].over = true
	} else {
		x.over = true
	}
	return x.id + " waits instead of " + id, says
}

func (r *randomCrowd) goesOn(x *oneOfACrowd, k int) (what, says string) {
	switch {
	case x.over:
		return x.id, "over"
	case k < 12:
		x.over = true
		return "undo of " + x.id, r.undo(x.id)
	case k < 14:
		return "release of " + x.id, r.release(x.id)
	}
	return "heartbeat of " + x.id, r.beats(x, true)
}

// check fails if somebody is in the lock twice, or has given up and is there all the same.
func (r *randomCrowd) check() {
	there := strings.Fields(strings.ReplaceAll(r.show(), "<", ""))
	for _, x := range r.all {
		n := 0
		for _, id := range there {
			if id == x.id {
				n++
			}
		}
		r.must(n == 0 || n == 1 && !x.over, "%s is there %d times, over: %v: %s", x.id, n, x.over, r.show())
	}
}
