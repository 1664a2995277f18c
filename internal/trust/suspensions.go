package trust

import "time"

// Suspensions notices that this machine was suspended. The monotonic clock stands still then, so leases run out unseen.
// The zero value never notices anything.
type Suspensions struct {
	total  func() time.Duration // suspended since the machine was started; it never goes back
	known  time.Duration        // the value of total at the last look that found something
	looked Instant              // when it looked last; see LookEvery
	all    []suspension         // the oldest first; at most suspensionsKept
	count  int                  // of all suspensions, also those taken together
}

// suspension is one stop of the machine. It had happened by the monotonic instant noticed.
type suspension struct {
	noticed Instant
	length  time.Duration
}

const (
	// LookEvery is how long a look is good for, so that a busy client does not read two clocks for every lock. A
	// suspension between a look and a judgement within that time is noticed at the next judgement. One between a look
	// and the sending of a request is counted as if it came after the sending. So the end may be too early, and never
	// too late.
	LookEvery = time.Millisecond

	// shortestSuspension is the least difference between two looks that counts as a suspension. Readings of the clocks
	// differ by less, unless the thread was held up between two of them; suspensions take longer.
	shortestSuspension = 20 * time.Millisecond

	// suspensionsKept bounds what a machine that sleeps every night remembers. Older suspensions are merged, as if all
	// had come when the last of them did. A hold that was taken in between then ends too early, never too late.
	suspensionsKept = 16
)

// NewSuspensions watches total. It starts from the largest of several readings: one that was held up is too small, and
// the next correct one would look like a suspension.
func NewSuspensions(total func() time.Duration) Suspensions {
	return Suspensions{total: total, known: max(total(), total(), total())}
}

// Look notices a suspension since the last look. It is called before every instant from which a lease is counted, and
// before every judgement of a window.
func (s *Suspensions) Look(now Instant) {
	if s.total == nil || now.Since(s.looked) < LookEvery {
		return
	}
	s.looked = now
	total := s.total()
	if total < s.known+shortestSuspension {
		return
	}
	s.all = append(s.all, suspension{noticed: now, length: total - s.known})
	if len(s.all) > suspensionsKept {
		s.all[1].length += s.all[0].length
		s.all = s.all[1:]
	}
	s.known = total
	s.count++
}

// Since returns how long the machine was suspended after the instant from.
func (s *Suspensions) Since(from Instant) time.Duration {
	var total time.Duration
	for _, n := range s.all {
		if n.noticed > from {
			total += n.length
		}
	}
	return total
}

// Count returns how many suspensions were noticed, so that instants computed before one can be computed anew.
func (s *Suspensions) Count() int { return s.count }
