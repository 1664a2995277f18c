package memlock

import (
	"context"
	"fmt"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// Latches: counts that belong to nobody. Every change has an ID, whose answer is kept for repetitions.

var _ driver.Latcher = (*Driver)(nil)

// latch is one that counts. At zero there is none, so a latch that was never set costs nothing.
type latch struct {
	count int64
	set   string // the ID that has set it
}

// latches are all of a store, and the answers that may be asked for again.
type latches struct {
	counting map[driver.Key]*latch
	answers  map[ref]*answer
	agenda   agenda // of the answers, by when they are forgotten
}

// answer is remembered for a repetition of a call.
type answer struct {
	entry
	set  bool
	left int64
}

func newLatches() latches {
	return latches{counting: make(map[driver.Key]*latch), answers: make(map[ref]*answer)}
}

// SetLatch sets a latch whose count is zero. It does not wait.
func (d *Driver) SetLatch(ctx context.Context, c *driver.LatchCall) (set bool, err error) {
	err = d.onLatch(ctx, c.Key, func(now time.Time, q *state) { set = q.setLatch(now, c) })
	return set, err
}

// CountDown takes one from the count. It does not wait.
func (d *Driver) CountDown(ctx context.Context, c *driver.LatchCall) (left int64, err error) {
	err = d.onLatch(ctx, c.Key, func(now time.Time, q *state) { left = q.countDown(now, c) })
	return left, err
}

// LatchCount returns the count.
func (d *Driver) LatchCount(ctx context.Context, key driver.Key) (left int64, err error) {
	err = d.onLatch(ctx, key, func(_ time.Time, q *state) {
		if l := q.latches.counting[key]; l != nil {
			left = l.count
		}
	})
	return left, err
}

// onLatch runs a step for a latch.
func (d *Driver) onLatch(ctx context.Context, key driver.Key, step func(now time.Time, q *state)) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if key.Kind != driver.KindLatch {
		return fmt.Errorf("a latch of kind %q: %w", key.Kind, driver.ErrUnsupported)
	}
	return d.do(func(now time.Time, q *state) error {
		step(now, q)
		return nil
	})
}

// setLatch sets the latch, unless it counts already; a repetition gets the first answer.
func (s *state) setLatch(now time.Time, c *driver.LatchCall) bool {
	a := s.latches.told(now, c)
	if a != nil {
		return a.set
	}
	l := s.latches.counting[c.Key]
	if l == nil {
		l = &latch{count: c.Count, set: c.ID}
		s.latches.counting[c.Key] = l
	}
	set := l.set == c.ID // also for a call that was answered longer ago than its horizon
	s.latches.remember(now, c, answer{set: set})
	return set
}

// countDown takes one from the count, once for each ID as long as a copy of the call may be under way. Not for longer:
// a latch that counts hundreds of thousands would keep as many IDs.
func (s *state) countDown(now time.Time, c *driver.LatchCall) int64 {
	a := s.latches.told(now, c)
	if a != nil {
		return a.left
	}
	var left int64
	if l := s.latches.counting[c.Key]; l != nil {
		left = s.take(l, c.Key)
	}
	s.latches.remember(now, c, answer{left: left})
	return left
}

// take takes one from l, which counts. At zero the latch is forgotten, and those who watch it hear of a change.
func (s *state) take(l *latch, key driver.Key) int64 {
	l.count--
	if l.count == 0 {
		delete(s.latches.counting, key)
		s.change(key)
	}
	return l.count
}

// told returns what was answered to this call before, or nil, and remembers it for longer. It forgets the answers whose
// time has come.
func (l *latches) told(now time.Time, c *driver.LatchCall) *answer {
	for e, ok := l.agenda.due(now); ok; e, ok = l.agenda.due(now) {
		l.agenda.remove(e)
		delete(l.answers, e.ref)
	}
	a := l.answers[ref{c.Key, c.ID}]
	if a != nil && now.Add(c.Horizon).After(a.at) {
		l.agenda.move(&a.entry, now.Add(c.Horizon))
	}
	return a
}

// remember keeps the answer for the horizon of the call.
func (l *latches) remember(now time.Time, c *driver.LatchCall, a answer) {
	if c.Horizon <= 0 {
		return
	}
	a.ref = ref{c.Key, c.ID}
	l.answers[a.ref] = &a
	l.agenda.add(&a.entry, now.Add(c.Horizon))
}
