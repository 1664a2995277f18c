// The checks that measure: round trips, clocks, and over which connection pushes come. The times are taken in
// check_facts.go.

package redislock

import (
	"fmt"
	"slices"
	"time"

	"github.com/interlock-go/interlock/driver"
)

const (
	// mostClockGap is how far the clocks of primaries may be apart. Clocks that are set over a network (NTP) differ by
	// less.
	mostClockGap = 100 * time.Millisecond

	// slowTrip is a median round trip that makes pushes useless: the claim of a pushed grant must arrive within
	// mostClaim.
	slowTrip = mostClaim / 10
)

// checkLatency compares the median round trip with what a pushed grant allows.
func checkLatency(n *nodeFacts) *opinion {
	if len(n.trips) == 0 {
		return nil
	}
	median, longest := n.trips[len(n.trips)/2], n.trips[len(n.trips)-1]
	if median > slowTrip {
		return warn("bring client and server closer, and give locks long leases",
			"a round trip takes %v (longest %v): a grant by push lasts %v until it is claimed", short(median),
			short(longest), mostClaim)
	}
	return fine("a round trip takes %v (longest %v)", short(median), short(longest))
}

// short rounds a time for people.
func short(d time.Duration) time.Duration {
	if d.Abs() > 10*time.Millisecond {
		return d.Round(time.Millisecond)
	}
	return d.Round(10 * time.Microsecond)
}

// checkClocks compares the primaries' clocks with each other. Our own is only the measure: no lock depends on it.
func checkClocks(nodes []*nodeFacts) []driver.Finding {
	var clocked []*nodeFacts
	for _, n := range nodes {
		if n.clocked {
			clocked = append(clocked, n)
		}
	}
	if len(clocked) == 0 {
		return nil
	}
	// The clock that is most behind comes first.
	slices.SortFunc(clocked, func(a, b *nodeFacts) int { return int(a.ahead - b.ahead) })
	last, first := clocked[0], clocked[len(clocked)-1]
	f := driver.Finding{Check: "clock", Level: driver.LevelOK}
	f.Detail = "the server's clock is " + aheadOrBehind(first.ahead) +
		" this machine's, on which no lock depends; the servers of a failover must agree"
	// Each difference is known only to half of its shortest round trip. What that leaves open counts in the servers'
	// favour.
	if gap := first.ahead - last.ahead; gap-(first.trips[0]+last.trips[0])/2 > mostClockGap {
		f.Level = driver.LevelWarn
		f.Detail = fmt.Sprintf(
			"the clock of %s is %v ahead of that of %s: a lock whose slot moves between them ends too early or "+
				"too late", first.addr, short(gap), last.addr)
		f.Advice = "set the servers' clocks over the network (NTP)"
	}
	return []driver.Finding{f}
}

// aheadOrBehind says how a clock that is ahead by d stands to ours.
func aheadOrBehind(d time.Duration) string {
	if d < 0 {
		return short(-d).String() + " behind"
	}
	return short(d).String() + " ahead of"
}

// checkPushes says over which connection grants arrive, which decides whether a waiter may start with the push itself.
func checkPushes(l linkFact) []driver.Finding {
	f := driver.Finding{Check: "pushes", Level: driver.LevelOK}
	switch {
	case l.err != nil:
		f.Level, f.Detail = driver.LevelFail, fmt.Sprintf("a script could not be run: %v", l.err)
		f.Advice = "see the package documentation of redislock for the rights that locking needs"
	// A transport that does not tell its connections has no finding.
	case !l.known:
		return nil
	case l.same:
		f.Detail = "pushes come over the connection of the replies (RESP3)"
	default:
		f.Detail = "pushes come over another connection than replies (RESP2), so each costs a round trip more"
		f.Advice = "let the client speak RESP3"
	}
	return []driver.Finding{f}
}
