package interlock

import (
	"slices"

	"github.com/interlock-go/interlock/driver"
)

// The model of read/write locks and semaphores with which histories_sharing_test.go compares the library. It has its
// own code for every rule, so that a mistake in the library is not in the model too.

// modelLock is the shortest model of an RWMutex (limit 0) and a Semaphore. It knows neither time nor engines.
type modelLock struct {
	limit int
	holds []*modelHold
	queue []*modelHold // of those who wait; first come, first served, but upgrades come first
}

// modelHold is a hold that an actor has of a lock or waits for.
type modelHold struct {
	who    int
	mode   driver.Mode
	weight int
	of     *modelHold // the upgradeable read that an Upgrade turns into a write
	again  bool       // it was granted beside what its actor had, so with the same token
	token  uint64     // when it was last looked at
}

// verdict is how the model answers a request.
type verdict string

const (
	isGranted  verdict = "granted"
	isDeadlock verdict = "deadlock"
	isHeld     verdict = "held"
	isWaiting  verdict = "waiting"
)

// ask makes the request h, and returns how it is answered.
func (m *modelLock) ask(h *modelHold, try bool) verdict {
	switch v := m.judge(h); {
	case v == "re-entry":
		h.again = true
		m.grant(h)
		return isGranted
	case v == "stuck":
		return isDeadlock
	case (v == "upgrade" || len(m.queue) == 0) && m.fits(h):
		m.grant(h)
		return isGranted
	case try:
		return isHeld
	case v == "upgrade":
		m.queue = append([]*modelHold{h}, m.queue...)
	default:
		m.queue = append(m.queue, h)
	}
	return isWaiting
}

// judge says how h relates to the holds of its actor.
func (m *modelLock) judge(h *modelHold) string {
	writes, upgradeable, reads := m.has(h.who, driver.Exclusive), m.has(h.who, driver.Upgradeable), m.has(h.who,
		driver.Shared)
	switch {
	case m.limit > 0 || !writes && !upgradeable && !reads:
		return "new"
	case writes, upgradeable && h.mode != driver.Exclusive, h.mode == driver.Shared:
		return "re-entry"
	case upgradeable:
		return "upgrade"
	case h.mode == driver.Upgradeable && !slices.ContainsFunc(m.holds,
		func(o *modelHold) bool { return o.mode == driver.Upgradeable }):
		return "re-entry"
	}
	return "stuck"
}

func (m *modelLock) has(who int, mode driver.Mode) bool {
	return slices.ContainsFunc(m.holds, func(h *modelHold) bool {
		return h.who == who && (h.mode == mode || mode == driver.Upgradeable && h.of != nil)
	})
}

// fits reports whether h can be beside the holds of others.
func (m *modelLock) fits(h *modelHold) bool {
	used := h.weight
	for _, o := range m.holds {
		used += o.weight
		if m.limit == 0 && o.who != h.who && (h.mode == driver.Exclusive || o.mode == driver.Exclusive ||
			h.mode == driver.Upgradeable && o.mode == driver.Upgradeable) {
			return false
		}
	}
	return m.limit == 0 || used <= m.limit
}

// grant makes h a hold. An upgrade takes the place of the read.
func (m *modelLock) grant(h *modelHold) {
	if h.of != nil {
		h.of.mode, h.of.of = driver.Exclusive, h
		return
	}
	m.holds = append(m.holds, h)
}

// downgrade makes a write a read, or the upgradeable read that it was.
func (m *modelLock) downgrade(h *modelHold) {
	h.mode = driver.Shared
	if h.of != nil {
		h.mode, h.of = driver.Upgradeable, nil
	}
	m.drain()
}

// end removes the holds and the waits that are over.
func (m *modelLock) end(over func(*modelHold) bool) {
	m.holds = slices.DeleteFunc(m.holds, over)
	m.queue = slices.DeleteFunc(m.queue, func(w *modelHold) bool { return over(w) || w.of != nil && over(w.of) })
	m.drain()
}

// drain grants from the head of the queue for as long as the head fits.
func (m *modelLock) drain() {
	for len(m.queue) > 0 && m.fits(m.queue[0]) {
		head := m.queue[0]
		m.queue = m.queue[1:]
		m.grant(head)
	}
}

// waits reports whether h still waits.
func (m *modelLock) waits(h *modelHold) bool { return slices.Contains(m.queue, h) }

// entry is a hold as the engine lists it: its owner, whether it is shared, and how many permits it has.
type entry struct {
	who    int
	shared bool
	weight int
}

// entries counts the holds of m by entry. The engine may count holds of one mode of one owner as one, except permits.
func (m *modelLock) entries() map[entry]int {
	all := make(map[entry]int)
	for _, h := range m.holds {
		all[entry{h.who, h.mode != driver.Exclusive, h.weight}]++
		if h.of != nil && h.mode == driver.Exclusive { // it keeps its read
			all[entry{h.who, true, 1}]++
		}
	}
	return m.countable(all)
}

// countable sets the counts to one where the engine may count holds as one.
func (m *modelLock) countable(all map[entry]int) map[entry]int {
	for e := range all {
		if m.limit == 0 {
			all[e] = 1
		}
	}
	return all
}
