package worker

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/enginekit"
	"github.com/interlock-go/interlock/fence"
	"github.com/interlock-go/interlock/torture/history"
	"github.com/interlock-go/interlock/torture/register"
)

// attempt is one acquisition: what is recorded of it, and how it is done.
type attempt struct {
	history.Event
	lock func(ctx context.Context) (*interlock.Lease, error)
}

// acquire makes the attempt, and returns nil if it fails.
func (w *worker) acquire(ctx context.Context, a *attempt) *interlock.Lease {
	wait, cancel := w.patience(ctx)
	defer cancel()
	w.asks(&a.Event)
	begun := time.Now()
	lease, err := a.lock(wait)
	a.Took, a.Late = time.Since(begun), wait.late()
	w.answered(ctx, &a.Event, lease, err)
	if err != nil {
		return nil
	}
	return lease
}

// patience bounds a wait, at random sometimes.
func (w *worker) patience(ctx context.Context) (*bound, context.CancelFunc) {
	if w.dice.Float64() >= w.j.Cancel {
		return within(ctx, w.j.Patience)
	}
	most := w.j.Patience / 4
	if w.j.Ends {
		most = min(most, w.j.Lease) // mostly nothing has come by then, so that there is something to withdraw
	}
	return w.until(ctx, time.Duration(w.dice.Int64N(int64(most))))
}

// until bounds a wait that is likely to end by that, and announces its end.
func (w *worker) until(ctx context.Context, d time.Duration) (*bound, context.CancelFunc) {
	if !w.j.Ends {
		return within(ctx, d)
	}
	return endedBy(ctx, d, func() { w.announce(register.Withdraws) })
}

// announce tells the run that something is about to be ended, if it wants to hear of that. Nobody else may use the
// connection to the register meanwhile.
func (w *worker) announce(what register.Ending) {
	if w.j.Ends {
		_ = w.reg.Announce(w.j.Proc, what) // then that goes unheard
	}
}

// asks records the call of an acquisition.
func (w *worker) asks(e *history.Event) {
	e.Proc, e.Gor, e.Seq, e.Op, e.Phase = w.j.Proc, w.gor, w.seq, history.Acquire, history.Call
	w.log.Write(*e)
}

// answered records what became of it.
func (w *worker) answered(ctx context.Context, e *history.Event, lease *interlock.Lease, err error) {
	if err != nil {
		e.Phase, e.Err, e.Reason = history.Fail, err.Error(), reasonOf(err, e.Name)
		if errors.Is(err, interlock.ErrUnavailable) {
			e.Phase = history.Unknown
			enginekit.Pause(ctx, 10*time.Millisecond)
		}
		w.log.Write(*e)
		return
	}
	stamp, ok := lease.Stamp()
	e.Phase, e.Token, e.Nonce, e.Deadline = history.OK, lease.Token(), stamp.Nonce, history.At(lease.Deadline())
	e.Stamp = roleOf(stamp)
	if !ok && e.Share != history.Permits { // which have no stamps
		e.Err = "lost before it was recorded"
	}
	w.log.Write(*e)
}

// roleOf is for what a stamp is.
func roleOf(stamp fence.Stamp) history.Share {
	switch {
	case stamp.Token == 0:
		return ""
	case stamp.Shared:
		return history.Reads
	}
	return history.Writes
}

// watch records if the hold is lost, until what it returns is called.
func (w *worker) watch(lease *interlock.Lease) (end func()) {
	gone, done := make(chan struct{}), make(chan struct{})
	go func() { // ends with the hold
		defer close(done)
		var known time.Time
		looks := time.NewTicker(max(w.j.Lease/looksOfALease, time.Millisecond))
		defer looks.Stop()
		for {
			// The deadline first: that of a hold that is over says when it ended.
			if deadline := lease.Deadline(); lease.Err() == nil {
				known = deadline
			}
			select {
			case <-lease.Lost():
				w.lost(lease, known)
				return
			case <-gone:
				return
			case <-looks.C:
			}
		}
	}()
	return func() { close(gone); <-done }
}

// looksOfALease is how often within a lease a watch looks at the deadline: what it knows of that is as old at most.
const looksOfALease = 10

// lost records a loss, and the deadline that was known before.
func (w *worker) lost(lease *interlock.Lease, known time.Time) {
	e := w.of(lease, history.Lost, history.OK)
	e.Deadline, e.Known, e.Reason = history.At(lease.Deadline()), history.At(known), reasonOf(lease.Err(), lease.Name())
	w.log.Write(e)
}

// reasonOf is how the hold of that name was lost, as err tells it, or nothing.
func reasonOf(err error, name string) string {
	var lost *interlock.LostError
	for _, one := range partsOf(err) {
		if errors.As(one, &lost) && lost.Name == name {
			return string(lost.Reason)
		}
	}
	return ""
}

// partsOf are the errors that were joined to err, or err.
func partsOf(err error) []error {
	for e := err; e != nil; e = errors.Unwrap(e) {
		if joined, is := e.(interface{ Unwrap() []error }); is {
			return joined.Unwrap()
		}
	}
	return []error{err}
}

// stay holds for a while, mean on average, and does again and again what each of the holds is for: as long as that
// goes on the holder is sure.
func (w *worker) stay(ctx context.Context, mean time.Duration, leases []*interlock.Lease, as []*worker) {
	rounds, all := w.rounds(mean)
	for range rounds {
		enginekit.Pause(ctx, all/time.Duration(2*rounds))
		for i, l := range leases {
			if as[i].use(ctx, l, all/time.Duration(2*rounds*len(leases))) != nil {
				return
			}
		}
	}
}

// use counts under a hold that is alone, and reads the fenced number at both ends of that time under one that is not.
// It returns an error if the hold was lost, or overtaken, or the register cannot be reached.
func (w *worker) use(ctx context.Context, lease *interlock.Lease, hold time.Duration) error {
	stamp, ok := lease.Stamp()
	switch {
	case !ok: // it was lost, or it is of a semaphore, whose permits have no stamps
		enginekit.Pause(ctx, hold)
		return w.look(lease, history.Read)
	case !stamp.Shared:
		return w.countOnce(ctx, lease, stamp, careful, hold)
	}
	at := w.entry(lease, stamp)
	at.Fenced = true
	_, err := w.touch(lease, careful, history.Read, at)
	if err == nil {
		enginekit.Pause(ctx, hold)
		_, err = w.touch(lease, careful, history.Read, at)
	}
	return err
}

// holdLong holds a lock that nobody else wants, for a long time.
func (w *worker) holdLong(ctx context.Context) {
	w.seq++
	name := w.j.Names[w.j.Proc*w.j.Goroutines+w.gor]
	lease := w.acquire(ctx, &attempt{Event: history.Event{Name: name}, lock: w.locks.Mutex(name, nil).Lock})
	if lease == nil {
		return
	}
	defer w.watch(lease)()
	w.count(ctx, lease, careful) // which tells the run that it has begun
	for end := time.Now().Add(w.j.Long); time.Now().Before(end) && lease.Err() == nil && ctx.Err() == nil; {
		enginekit.Pause(ctx, w.j.Lease/5)
		_ = w.look(lease, history.Read) // an end is told of otherwise
	}
	w.release(ctx, lease)
}

// bound is the context of one call, and knows when it ended.
//
// A context whose time is over ends when the program gets to its timer, and a machine with more to do than
// processors may leave the timer lying, or the goroutines that it wakes, while others of the same process get on.
// What counts is therefore not the instant at which it was to end but that at which a goroutine ran that was started
// by its end for that alone, and uses nothing of what is tested. (So a library that kept all processors of its
// program busy would not be noticed here.)
type bound struct {
	context.Context                 //nolint:containedctx // it is one
	parent          context.Context //nolint:containedctx // whose end is another thing

	told atomic.Pointer[time.Time]
}

// within bounds a call by d. What it returns must be called when the call is over.
func within(parent context.Context, d time.Duration) (*bound, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(parent, d)
	return newBound(ctx, parent, cancel)
}

// endedBy bounds a call by d as well, and has announce called before the context ends, which is when that has returned.
// What it returns must be called when the call is over, and returns when announce is not called any more.
func endedBy(parent context.Context, d time.Duration, announce func()) (*bound, context.CancelFunc) {
	ctx, cancel := context.WithCancel(parent)
	done := make(chan struct{})
	timer := time.AfterFunc(d, func() {
		defer close(done)
		announce()
		cancel()
	})
	b, end := newBound(ctx, parent, cancel)
	return b, func() {
		if !timer.Stop() {
			<-done
		}
		end()
	}
}

// newBound is the bound that ctx is, whose parent's end is another thing.
func newBound(ctx, parent context.Context, cancel context.CancelFunc) (*bound, context.CancelFunc) {
	b := &bound{Context: ctx, parent: parent}
	stop := context.AfterFunc(ctx, func() {
		now := time.Now()
		b.told.Store(&now)
	})
	return b, func() {
		stop() // first, or cancel would start the goroutine
		cancel()
	}
}

// atOnce is how late a call is that was told before anybody else: 0 says that its context has not ended.
const atOnce = 1

// late is how long ago the context has ended; zero if it has not, or because its parent has.
func (b *bound) late() time.Duration {
	if b.Err() == nil || b.parent.Err() != nil {
		return 0
	}
	if told := b.told.Load(); told != nil {
		return max(time.Since(*told), atOnce)
	}
	return atOnce
}
