package run

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/interlock-go/interlock/enginekit"
	"github.com/interlock-go/interlock/internal/servers"
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
