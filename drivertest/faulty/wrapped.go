package faulty

import (
	"context"
	"errors"
	"iter"
	"sync"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/drivertest/internal/optional"
)

// The wrapper: each call travels there, is made, and travels back, and suffers on the way what its rule says.

// errDropped is why a call is unavailable when its caller is told at once.
var errDropped = errors.New("connection lost")

// wrapped has the methods of all interfaces; Wrap hides those that the inner driver lacks.
type wrapped struct {
	d optional.All
	c *Control
}

// Traits returns those of the wrapped driver, but never Local: a call that can be delayed and paused is not local.
func (w *wrapped) Traits() driver.Traits {
	t := w.d.Traits()
	t.Local = false
	return t
}

func (w *wrapped) Close() error {
	w.c.close()
	return w.d.Close()
}

// suffer makes one call: the way there, do, the way back. A nil error means that do was called and its result counts.
// With Copy, do is called a second time, later.
func (w *wrapped) suffer(ctx context.Context, op Op, names []string, do func(context.Context)) error {
	r := w.c.rule(op, names...)
	if err := w.travel(ctx, op, names, r, Request); err != nil {
		return err
	}
	do(ctx)
	if r.Copy > 0 {
		w.c.later(r.After+r.Copy, do)
	}
	return w.travel(ctx, op, names, r, Reply)
}

// travel is one way of a call. It waits for the delay and for a server that hangs, and then says what was lost.
func (w *wrapped) travel(ctx context.Context, op Op, names []string, r Rule, part Part) error {
	delay, fail := r.Before, r.Err
	if part == Reply {
		delay, fail = r.After, nil
	}
	if delay > 0 {
		if err := sleep(ctx, delay); err != nil {
			return unavailable(op, names, err)
		}
	}
	if err := w.c.gate(ctx); err != nil {
		return unavailable(op, names, err)
	}
	if err := w.c.lost(op, names, part); err != nil {
		return unavailable(op, names, err)
	}
	switch {
	case fail != nil:
		return fail
	case r.Drop != part:
		return nil
	case r.Hang:
		<-ctx.Done()
		return unavailable(op, names, ctx.Err())
	}
	return unavailable(op, names, errDropped)
}

func (w *wrapped) Acquire(ctx context.Context, r *driver.Request) (driver.Grant, error) {
	return w.grant(ctx, Acquire, r, w.d.Acquire)
}

func (w *wrapped) Requeue(ctx context.Context, give *driver.Release, r *driver.Request) (driver.Grant, error) {
	return w.grant(ctx, Requeue, r, func(ctx context.Context, r *driver.Request) (driver.Grant, error) {
		return w.d.Requeue(ctx, give, r)
	})
}

func (w *wrapped) Convert(ctx context.Context, beside string, r *driver.Request) (driver.Grant, error) {
	return w.grant(ctx, Convert, r, func(ctx context.Context, r *driver.Request) (driver.Grant, error) {
		return w.d.Convert(ctx, beside, r)
	})
}

func (w *wrapped) Adopt(ctx context.Context, from string, r *driver.Request) (driver.Grant, error) {
	return w.grant(ctx, Adopt, r, func(ctx context.Context, r *driver.Request) (driver.Grant, error) {
		return w.d.Adopt(ctx, from, r)
	})
}

// grant makes a call that is answered with a grant.
func (w *wrapped) grant(ctx context.Context, op Op, r *driver.Request,
	ask func(context.Context, *driver.Request) (driver.Grant, error),
) (driver.Grant, error) {
	var g driver.Grant
	var answer error
	first := true
	err := w.suffer(ctx, op, []string{r.Name}, func(ctx context.Context) {
		if !first {
			again := *r
			again.Waiting, again.Lost, again.Wanted = nil, nil, nil // nobody hears what a copy is told
			_, _ = ask(ctx, &again)                                 // neither does anybody see its reply
			return
		}
		first = false
		g, answer = ask(ctx, w.hearing(r))
	})
	if err == nil {
		err = answer
	}
	if err != nil {
		return driver.Grant{}, err
	}
	return g, nil
}

// AcquireAll is one operation: a rule for any of its locks covers all of it.
func (w *wrapped) AcquireAll(ctx context.Context, rs []*driver.Request) (gs []driver.Grant, err error) {
	names, heard, copies := make([]string, len(rs)), make([]*driver.Request, len(rs)), make([]*driver.Request, len(rs))
	for i, r := range rs {
		copied := *r
		copied.Lost, copied.Wanted = nil, nil // nobody hears what a copy is told
		names[i], heard[i], copies[i] = r.Name, w.hearing(r), &copied
	}
	var answer error
	first := true
	err = w.suffer(ctx, AcquireAll, names, func(ctx context.Context) {
		if !first {
			_, _ = w.d.AcquireAll(ctx, copies) // neither does anybody see its reply
			return
		}
		first = false
		gs, answer = w.d.AcquireAll(ctx, heard)
	})
	if err == nil {
		err = answer
	}
	if err != nil {
		return nil, err
	}
	return gs, nil
}

// hearing returns r with callbacks that come through the same network.
func (w *wrapped) hearing(r *driver.Request) *driver.Request {
	heard := *r
	if r.Waiting != nil {
		heard.Waiting = func(held *driver.HeldError) { w.c.tell(func() { r.Waiting(held) }) }
	}
	if r.Lost != nil {
		heard.Lost = func(reason driver.LostReason, cause error) { w.c.tell(func() { r.Lost(reason, cause) }) }
	}
	if r.Wanted != nil {
		heard.Wanted = func() { w.c.tell(r.Wanted) }
	}
	return &heard
}

func (w *wrapped) Release(ctx context.Context, r *driver.Release) error {
	return w.plain(ctx, Release, r.Name, func(ctx context.Context) error { return w.d.Release(ctx, r) })
}

func (w *wrapped) Break(ctx context.Context, key driver.Key, token uint64) error {
	return w.plain(ctx, Break, key.Name, func(ctx context.Context) error { return w.d.Break(ctx, key, token) })
}

func (w *wrapped) Resize(ctx context.Context, key driver.Key, limit int) error {
	return w.plain(ctx, Resize, key.Name, func(ctx context.Context) error { return w.d.Resize(ctx, key, limit) })
}

// plain makes a call that answers with nothing but an error.
func (w *wrapped) plain(ctx context.Context, op Op, name string, ask func(context.Context) error) error {
	var answer error
	first := true
	err := w.suffer(ctx, op, []string{name}, func(ctx context.Context) {
		if !first {
			_ = ask(ctx) // nobody sees the reply of a copy
			return
		}
		first = false
		answer = ask(ctx)
	})
	if err != nil {
		return err
	}
	return answer
}

// Renew sends the batch as one message, so one rule decides on all of it: the first rule for any of its names. A copy
// of the message renews again, and its answers are dropped.
func (w *wrapped) Renew(ctx context.Context, batch []driver.Renewal, done func(int, error)) {
	names := make([]string, len(batch))
	for i, r := range batch {
		names[i] = r.Name
	}
	var mu sync.Mutex // guards answers; done is not called under it
	answers := make(map[int]error, len(batch))
	first := true
	err := w.suffer(ctx, Renew, names, func(ctx context.Context) {
		if !first {
			w.d.Renew(ctx, batch, func(int, error) {})
			return
		}
		first = false
		w.d.Renew(ctx, batch, func(i int, err error) {
			mu.Lock()
			defer mu.Unlock()
			answers[i] = err
		})
	})
	// The answers travel back together: the inner Renew has returned, so all are here, unless it was never called.
	for i := range batch {
		if err != nil {
			done(i, err)
			continue
		}
		done(i, answers[i])
	}
}

// Locks has both faults, of the request and of the reply, before the first lock, so a list that has begun is whole.
func (w *wrapped) Locks(ctx context.Context, prefix string) iter.Seq2[driver.LockInfo, error] {
	return func(yield func(driver.LockInfo, error) bool) {
		if err := w.suffer(ctx, Locks, []string{prefix}, func(context.Context) {}); err != nil {
			yield(driver.LockInfo{}, err)
			return
		}
		w.d.Locks(ctx, prefix)(yield)
	}
}

// OnReconnect is not disturbed: it is the inner driver's own word on its connections.
func (w *wrapped) OnReconnect(f func()) (stop func()) { return w.d.OnReconnect(f) }

func (w *wrapped) Diagnose(ctx context.Context) []driver.Finding {
	return w.d.Diagnose(ctx)
}

// Looks, watches, latches and conditions through the bad network; wrapped.go has the rest.

func (w *wrapped) Look(ctx context.Context, key driver.Key) (driver.LockInfo, error) {
	return valued(ctx, w, Look, key.Name, func(ctx context.Context) (driver.LockInfo, error) {
		return w.d.Look(ctx, key)
	})
}

// Watch itself always reaches the engine; what it tells may get lost or be held up.
func (w *wrapped) Watch(ctx context.Context, key driver.Key, changed func()) error {
	return w.d.Watch(ctx, key, func() {
		if w.c.rule(Watch, key.Name).Drop == 0 {
			w.c.tell(changed)
		}
	})
}

func (w *wrapped) SetLatch(ctx context.Context, l *driver.LatchCall) (bool, error) {
	return valued(ctx, w, SetLatch, l.Name, func(ctx context.Context) (bool, error) { return w.d.SetLatch(ctx, l) })
}

func (w *wrapped) CountDown(ctx context.Context, l *driver.LatchCall) (int64, error) {
	return valued(ctx, w, CountDown, l.Name, func(ctx context.Context) (int64, error) { return w.d.CountDown(ctx, l) })
}

func (w *wrapped) LatchCount(ctx context.Context, key driver.Key) (int64, error) {
	return valued(ctx, w, LatchCount, key.Name, func(ctx context.Context) (int64, error) {
		return w.d.LatchCount(ctx, key)
	})
}

func (w *wrapped) CondWait(
	ctx context.Context, give *driver.Release, r *driver.Request, parked func(),
) (driver.Grant, error) {
	return w.grant(ctx, CondWait, r, func(ctx context.Context, r *driver.Request) (driver.Grant, error) {
		return w.d.CondWait(ctx, give, r, func() { w.c.tell(parked) })
	})
}

func (w *wrapped) CondSignal(ctx context.Context, s *driver.Signal) error {
	return w.plain(ctx, CondSignal, s.Name, func(ctx context.Context) error { return w.d.CondSignal(ctx, s) })
}

// valued makes a call that answers with a value.
func valued[T any](
	ctx context.Context, w *wrapped, op Op, name string, ask func(context.Context) (T, error),
) (answer T, err error) {
	first := true
	err = w.plain(ctx, op, name, func(ctx context.Context) error {
		got, err := ask(ctx)
		if first { // a copy, whose answer nobody sees, may come when this call has returned
			first, answer = false, got
		}
		return err
	})
	return answer, err
}
