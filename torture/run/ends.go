package run

import (
	"context"
	"maps"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/interlock-go/interlock/enginekit"
	"github.com/interlock-go/interlock/internal/servers"
	"github.com/interlock-go/interlock/torture/register"
	"github.com/interlock-go/interlock/torture/target"
)

// A release, a conversion or a withdrawal that was carried out, and whose answer is lost, is asked again: then the
// engine finds no such hold, or somebody else in its place. Nothing was lost, and nobody may be told so.

// ends loses the answers to what one client ends: one after the other, so that between two of them its renewals arrive,
// and no hold is lost by the fault itself.
type ends struct {
	links  links
	moment time.Duration // for which answers are lost at most, once something was asked

	mu    sync.Mutex // guards what follows
	dice  *rand.Rand
	busy  bool // one is under way
	over  bool
	lost  map[register.Ending]int
	under sync.WaitGroup // those under way
}

// momentsOfALease is how many of the times for which answers are lost at once are a lease.
const momentsOfALease = 20

// loseEnds loses the answers to what the client ends, for a while, and returns how many it were. If there was nothing
// to lose the error is ErrNothing.
func (n *nemesis) loseEnds(
	ctx context.Context, dice *rand.Rand, lasts time.Duration, victim *process,
) (map[register.Ending]int, error) {
	e := &ends{
		links: victim.links, moment: n.Target.Lease / momentsOfALease, dice: dice, lost: map[register.Ending]int{},
	}
	n.register.Hear(victim.job.Proc, func(what register.Ending) { e.hear(ctx, what) })
	enginekit.Pause(ctx, lasts)
	n.register.Hear(victim.job.Proc, nil)
	lost := e.end()
	if len(lost) == 0 {
		return nil, target.ErrNothing
	}
	return lost, nil
}

// end returns what was lost, when nothing is under way any more.
func (e *ends) end() map[register.Ending]int {
	e.mu.Lock()
	e.over = true
	e.mu.Unlock()
	e.under.Wait()
	e.mu.Lock()
	defer e.mu.Unlock()
	return maps.Clone(e.lost)
}

// hear loses the answer to what the client is about to ask, of releases every other time, unless that of another
// request is being lost.
func (e *ends) hear(ctx context.Context, what register.Ending) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.busy || e.over || what == register.Releases && e.dice.IntN(2) == 0 {
		return
	}
	e.busy = true
	on, moment := e.links.some(e.dice), time.Duration(e.dice.Int64N(int64(e.moment)+1))
	asked := on.asked()
	on.each((*servers.Proxy).DropReplies)
	e.under.Go(func() { // ends after a moment or two
		sent := on.awaitMore(ctx, asked, e.moment)
		enginekit.Pause(ctx, moment)
		// A connection that has lost an answer never has another, so it ends: the request is asked again on the next.
		on.each((*servers.Proxy).Pass)
		on.each((*servers.Proxy).Reset)
		e.mu.Lock()
		defer e.mu.Unlock()
		if e.busy = false; sent { // else it was no request: others of the process have the lock now
			e.lost[what]++
		}
	})
}

// asked is how many bytes of requests have passed.
func (l links) asked() (sum int64) {
	for _, p := range l {
		sum += p.Bytes(servers.ToServer)
	}
	return sum
}

// awaitMore waits for more requests than asked to pass, and reports whether some have.
func (l links) awaitMore(ctx context.Context, asked int64, patience time.Duration) bool {
	for until := time.Now().Add(patience); time.Now().Before(until); {
		if l.asked() > asked {
			return true
		}
		if !enginekit.Pause(ctx, time.Millisecond) {
			return false
		}
	}
	return false
}
