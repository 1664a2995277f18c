package compare

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/interlock-go/interlock/enginekit"
)

// patience is how many leases the others wait for a lock that does not become free.
const patience = 3

// faults lets three holders fail at once in each round, each in its own way; nearly all of it is waiting.
func (s *subject) faults(ctx context.Context, row *Row) error {
	if s.engine == "mem" {
		const why = "who holds and who waits are one process"
		row.Killed, row.Cut, row.Stopped = isNone(why), isNone(why), isNone(why)
		return nil
	}
	if s.server == nil {
		row.Cut = isNone("there is no connection")
	}
	for round := range s.Rounds {
		s.Say(fmt.Sprintf("  %s: faults, round %d of %d", s.label, round+1, s.Rounds))
		var all sync.WaitGroup
		errs := make([]error, 3)
		all.Go(func() { errs[0] = s.kill(ctx, round, row) })
		all.Go(func() { errs[1] = s.stop(ctx, round, row) })
		if s.server != nil {
			all.Go(func() { errs[2] = s.cut(ctx, round, row) })
		}
		all.Wait()
		if err := errors.Join(errs...); err != nil {
			return err
		}
	}
	return nil
}

// failure is one that a holder suffers, and when another client had its lock.
type failure struct {
	*holder
	at   time.Time
	free time.Duration // after it; 0 if the lock did not become free
}

// fail starts a holder that reaches the server at addr, and lets something happen to it while another client waits.
func (s *subject) fail(
	ctx context.Context, kind, addr string, round int, fault func(h *holder) error,
) (*failure, error) {
	name := fmt.Sprintf("%s-%d", kind, round)
	h, err := hold(ctx, order{URL: s.url(addr), Name: name, Lease: s.Lease}, false)
	if err != nil {
		return nil, err
	}
	f := &failure{holder: h}
	if f.free, f.at, err = s.freeAfter(ctx, name, round, func() error { return fault(h) }); err != nil {
		h.end()
		return nil, err
	}
	return f, nil
}

// kill ends the holder as nothing can be caught.
func (s *subject) kill(ctx context.Context, round int, row *Row) error {
	f, err := s.fail(ctx, "kill", s.addr(), round, func(h *holder) error { return h.Signal(os.Kill) })
	if err != nil {
		return err
	}
	defer f.end()
	row.Killed.take(f.free, s)
	return nil
}

// cut lets nothing pass any more between the holder and the servers, and tells neither side.
func (s *subject) cut(ctx context.Context, round int, row *Row) error {
	p, err := s.server.Proxies()
	if err != nil {
		return err
	}
	f, err := s.fail(ctx, "cut", p.Addr(), round, func(*holder) error {
		p.BlackHole()
		return nil
	})
	if err != nil {
		return err
	}
	defer f.end()
	row.Cut.take(f.free, s)
	told, err := s.told(f, &row.CutTold)
	if err != nil || told.IsZero() {
		return err
	}
	row.CutTold.add(told.Sub(f.at))
	if late := told.Sub(f.at.Add(f.free)); f.free > 0 && late > 0 {
		row.CutTold.Why = fmt.Sprintf("in one round or more the holder knew only after the lock was free (by %v the "+
			"last time)",
			late.Round(time.Microsecond))
	}
	return nil
}

// stop stops the holder for longer than its lease, and lets it go on when another has the lock.
func (s *subject) stop(ctx context.Context, round int, row *Row) error {
	f, err := s.fail(ctx, "stop", s.addr(), round, func(h *holder) error { return h.Suspend() })
	if err != nil {
		return err
	}
	defer f.end()
	row.Stopped.take(f.free, s)
	resumed := time.Now()
	if err := f.Resume(); err != nil || f.free == 0 {
		return err
	}
	told, err := s.told(f, &row.ContTold)
	if err == nil && !told.IsZero() {
		row.ContTold.add(max(0, told.Sub(resumed)))
	}
	return err
}

// told returns when the holder knows that it has lost the lock; zero if it is not told, which the cell says then.
func (s *subject) told(f *failure, c *Cell) (time.Time, error) {
	at, err := f.next(patience * s.Lease)
	if errors.Is(err, errSilent) {
		c.Why = "the holder was not told"
		return time.Time{}, nil
	}
	return at, err
}

// take adds a time, or says that the lock did not become free.
func (c *Cell) take(free time.Duration, s *subject) {
	if free == 0 {
		c.Why = fmt.Sprintf("not within %v", patience*s.Lease)
		return
	}
	c.add(free)
}

// freeAfter has another client wait for the lock, lets the fault happen, and returns how long after that the other has
// it, or 0 if it does not get it, and when the fault was.
func (s *subject) freeAfter(
	ctx context.Context, name string, round int, fault func() error,
) (d time.Duration, at time.Time, err error) {
	other, err := s.open(ctx, s.addr(), s.Lease)
	if err != nil {
		return 0, at, err
	}
	defer func() { err = errors.Join(err, other.Close()) }()
	waiting, stop := context.WithCancel(ctx)
	defer stop()
	type outcome struct {
		at  time.Time
		err error
	}
	got := make(chan outcome, 1)
	go func() { // ends with the lock, or with waiting
		held, err := other.Lock(waiting, name)
		o := outcome{time.Now(), err}
		if err == nil {
			o.err = held.Unlock(ctx)
		}
		got <- o
	}()
	// It waits in the engine by then, and the holder has renewed at least once. It does so three times in a lease, and
	// each round has its own moment in between.
	if err := pause(ctx, s.Lease/2+time.Duration(round)*s.Lease/time.Duration(3*s.Rounds)); err != nil {
		return 0, at, err
	}
	at = time.Now()
	if err := fault(); err != nil {
		return 0, at, err
	}
	timer := time.AfterFunc(patience*s.Lease, stop)
	defer timer.Stop()
	o := <-got
	if errors.Is(o.err, context.Canceled) && ctx.Err() == nil {
		return 0, at, nil
	}
	return o.at.Sub(at), at, o.err
}

func pause(ctx context.Context, d time.Duration) error {
	if !enginekit.Pause(ctx, d) {
		return ctx.Err()
	}
	return nil
}
