package target

import (
	"strings"
	"time"
)

// Again is how long, at most, a lock whose holder was killed stays free when its lease has run out, although others
// want it and whoever of them was killed too. Leases last for lease.
func (g *Target) Again(lease time.Duration) time.Duration {
	claim := min(lease, 2*time.Second) // one of the dead may be granted what it does not claim
	switch {
	case strings.HasPrefix(g.Name, "redis"):
		return claim
	case strings.HasPrefix(g.Name, "redlock"):
		return claim + time.Second // those who live may split the votes
	}
	return time.Second // sessions end some ticks late
}

// Behind is how long, at most, a lock that was given back stays free although others want it, because some of them
// were killed: on Redis the dead are passed over, elsewhere their sessions have to end.
func (g *Target) Behind(lease time.Duration) time.Duration {
	if strings.HasPrefix(g.Name, "redis") || strings.HasPrefix(g.Name, "redlock") {
		return g.Again(lease)
	}
	return lease + g.Again(lease)
}
