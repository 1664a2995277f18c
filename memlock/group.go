package memlock

import (
	"slices"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// What one owner has of a lock. lock.go judges by it.

// group is what one owner has of a lock: several holds if a named owner re-entered or a hold was converted, else one.
// The owner has the lock while any of its holds lives.
type group struct {
	since time.Time // of the first of its holds
	block block     // of the newest acquisition, which all holds share: an upgrade mints a new one
	holds []*record
}

// mode returns the strongest mode of g's holds, kept ones included: they keep others out.
func (g *group) mode() driver.Mode {
	mode := driver.Shared
	for _, h := range g.holds {
		if h.req.Mode == driver.Exclusive {
			return driver.Exclusive
		}
		if h.req.Mode == driver.Upgradeable {
			mode = driver.Upgradeable
		}
	}
	return mode
}

// liveMode is mode without the holds that answer to nobody any more (released with Keep, or delayed), and without one
// more.
func (g *group) liveMode(without *record) driver.Mode {
	live := group{}
	for _, h := range g.holds {
		if h != without && h.phase == held {
			live.holds = append(live.holds, h)
		}
	}
	return live.mode()
}

// until returns the end of the lease that lasts longest.
func (g *group) until() time.Time {
	var end time.Time
	for _, h := range g.holds {
		if h.at.After(end) {
			end = h.at
		}
	}
	return end
}

// contains reports whether token names any of g's holds.
func (g *group) contains(token uint64) bool {
	return g.block.contains(token) || slices.ContainsFunc(g.holds, func(h *record) bool {
		return h.block.contains(token)
	})
}

// belongs reports whether g is the named owner's and live. A hold released with Keep admits nobody, not even its owner:
// the point of Keep is that the lock stays closed.
func (g *group) belongs(owner string, without *record) bool {
	return slices.ContainsFunc(g.holds, func(h *record) bool {
		return h != without && h.phase == held && h.req.Named && h.req.Owner == owner
	})
}

// permits returns how many permits g's shared holds take.
func (g *group) permits() int {
	sum := 0
	for _, h := range g.holds {
		if h.req.Mode == driver.Shared {
			sum += h.req.Weight
		}
	}
	return sum
}
