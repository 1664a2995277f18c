package run

import (
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/interlock-go/interlock/enginekit"
	"github.com/interlock-go/interlock/internal/servers"
	"github.com/interlock-go/interlock/torture/register"
	"github.com/interlock-go/interlock/torture/target"
)

// links are the ways between one client and the servers: a proxy before each server.
type links []*servers.Proxy

// newLinks has start make a proxy for a client before each server, in the network that the
// client is in if there is one.
func newLinks(
	t testing.TB, at *servers.Member, addrs []string, start func(testing.TB, *servers.Member, string) *servers.Proxy,
) (all links) {
	for _, addr := range addrs {
		all = append(all, start(t, at, addr))
	}
	return all
}

// addrs are where the client finds the servers.
func (l links) addrs() (all []string) {
	for _, p := range l {
		all = append(all, p.Addr())
	}
	return all
}

// some are those that a fault is on: all, and where there are several every other time only some, so that the client
// hears others. Among these is one that the client uses, mostly the busiest: a client of ZooKeeper talks to one server,
// and one of a primary hardly to the Sentinels; neither would notice that another way is bad.
func (l links) some(dice *rand.Rand) links {
	if len(l) < 2 || dice.IntN(2) == 0 {
		return l
	}
	mixed := slices.Clone(l)
	dice.Shuffle(len(mixed), func(a, b int) { mixed[a], mixed[b] = mixed[b], mixed[a] })
	used := mixed.oneInUse(dice)
	mixed[0], mixed[used] = mixed[used], mixed[0]
	return mixed[:1+dice.IntN(len(mixed)-1)]
}

// oneInUse draws one of the ways with an open connection, weighted by the bytes that have ever passed on it and one,
// and returns its index, or 0 if there is none.
func (l links) oneInUse(dice *rand.Rand) int {
	sums, sum := make([]int64, len(l)), int64(0)
	for i, p := range l {
		if open, _ := p.Connections(); open > 0 {
			sum += 1 + p.Bytes(servers.BothWays)
		}
		sums[i] = sum
	}
	drawn := int64(dice.Float64() * float64(sum))
	return max(0, slices.IndexFunc(sums, func(until int64) bool { return drawn < until }))
}

func (l links) each(do func(p *servers.Proxy)) {
	for _, p := range l {
		do(p)
	}
}

// delay makes what passes in either direction arrive later.
func (l links) delay(by time.Duration) {
	l.each(func(p *servers.Proxy) { p.Delay(servers.BothWays, by) })
}

const (
	// between is how much later the next byte arrives under Slices, and longReply the most that
	// arrives on a connection.
	between   = 100 * time.Microsecond
	longReply = 4096
)

// disturb does something to the ways for a while.
func (l links) disturb(ctx context.Context, dice *rand.Rand, fault target.Fault, lasts time.Duration) {
	defer l.each((*servers.Proxy).Pass)
	switch fault {
	case target.Cut:
		l.each(func(p *servers.Proxy) { p.BlackHole(servers.BothWays) })
	case target.LateRequests:
		l.each(func(p *servers.Proxy) { p.BlackHole(servers.ToServer) })
	case target.LoseReplies:
		l.each((*servers.Proxy).DropReplies)
	case target.OneConn:
		l.each(func(p *servers.Proxy) { p.Limit(1) })
	case target.Slices:
		l.each(func(p *servers.Proxy) { p.Slice(servers.BothWays, between) })
		for end := time.Now().Add(lasts); time.Now().Before(end) && ctx.Err() == nil; {
			l.each(func(p *servers.Proxy) { p.HalfReplies(1 + dice.IntN(longReply)) })
			enginekit.Pause(ctx, time.Duration(dice.Int64N(int64(lasts/4)+1)))
		}
		return
	case target.Reset:
		for end := time.Now().Add(lasts); time.Now().Before(end) && ctx.Err() == nil; {
			l.each((*servers.Proxy).Reset)
			enginekit.Pause(ctx, time.Duration(dice.Int64N(int64(lasts/8)+1)))
		}
		return
	}
	enginekit.Pause(ctx, lasts)
	if fault == target.LoseReplies {
		l.each((*servers.Proxy).Reset) // a connection that has lost replies never answers again
	}
}

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
