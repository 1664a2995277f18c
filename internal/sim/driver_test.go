package sim

import (
	"context"
	"iter"
	"sync"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// Acquire asks until the engine has answered for good.
func (l *link) Acquire(ctx context.Context, r *driver.Request) (driver.Grant, error) {
	return l.ask(ctx, r, nil)
}

// Requeue is Acquire with a release in the same step.
func (l *link) Requeue(ctx context.Context, give *driver.Release, r *driver.Request) (driver.Grant, error) {
	l.w.counts.hit("requeue")
	return l.ask(ctx, r, give)
}

// answer is one thing that the engine says to an asking.
type answer struct {
	held  *driver.HeldError // somebody is in the way: wait
	grant driver.Grant
	err   error
}

// asking is a request under way. Copies of it may be under way at once.
type asking struct {
	r       *driver.Request
	answers chan answer // large enough for what may come while the driver is busy; what is too much is as good as lost
	lost    sync.Once
}

// hear takes in an answer.
func (a *asking) hear(x answer) {
	select {
	case a.answers <- x:
	default:
	}
}

// lose takes in that the engine has ended the hold. Copies of the request were told too, the core is told once.
func (a *asking) lose(reason driver.LostReason, cause error) {
	a.lost.Do(func() { a.r.Lost(reason, cause) })
}

func (l *link) ask(ctx context.Context, r *driver.Request, give *driver.Release) (driver.Grant, error) {
	if err := ctx.Err(); err != nil {
		return driver.Grant{}, err
	}
	a := &asking{r: r, answers: make(chan answer, 64)}
	l.sendCopy(a, give)
	beat := time.NewTimer(heartbeat)
	defer beat.Stop()
	silence := time.NewTimer(l.patience)
	defer silence.Stop()
	done := ctx.Done()
	if l.w.conf.flaw == ignoresContexts {
		done = nil
	}
	waits := false
	for {
		select {
		case x := <-a.answers:
			if x.held == nil {
				return x.grant, x.err
			}
			waits = true
			silence.Reset(l.patience)
			r.Waiting(x.held)
		case <-beat.C:
			beat.Reset(heartbeat)
			if waits { // before, there is no place in the queue to keep alive
				l.w.counts.hit("heartbeat")
				l.sendCopy(a, nil)
			}
		case <-silence.C:
			l.w.counts.hit("gave up asking")
			return driver.Grant{}, errNoAnswer
		case <-done:
			return driver.Grant{}, ctx.Err()
		}
	}
}

// sendCopy sends the request once more.
func (l *link) sendCopy(a *asking, give *driver.Release) {
	m := l.message("acquire", a.r.ID)
	m.toEngine(func() { l.w.engine.acquire(m, a, give) })
}

// exchange sends a request and waits for the one answer to it.
func exchange[T any](ctx context.Context, l *link, op, id string, serve func() T) (T, error) {
	var none T
	m := l.message(op, id)
	answers := make(chan T, 4)
	m.toEngine(func() {
		x := serve()
		m.toProcess("answer", func() {
			select {
			case answers <- x:
			default: // a repeated request has been answered often enough
			}
		})
	})
	silence := time.NewTimer(l.patience)
	defer silence.Stop()
	select {
	case x := <-answers:
		return x, nil
	case <-silence.C:
		return none, errNoAnswer
	case <-ctx.Done():
		return none, ctx.Err()
	}
}

// Release gives back once. The core asks again when the outcome is unknown.
func (l *link) Release(ctx context.Context, r *driver.Release) error {
	op := "release"
	if r.Undo {
		op = "undo"
		l.w.counts.hit("undo")
	}
	own := *r
	said, err := exchange(ctx, l, op, r.ID, func() error { return l.w.engine.release(l, &own) })
	if err != nil {
		l.w.counts.hit("release without an answer")
		return err
	}
	return said
}

// Renew sends the batch as one message.
func (l *link) Renew(ctx context.Context, batch []driver.Renewal, done func(i int, err error)) {
	said, err := exchange(ctx, l, "renew", batch[0].ID, func() []error { return l.w.engine.renew(l, batch) })
	if err != nil {
		l.w.counts.hit("renewal without an answer")
	}
	if err != nil && l.w.conf.flaw == silenceIsYes {
		said, err = make([]error, len(batch)), nil
	}
	if len(batch) > 1 {
		l.w.counts.hit("batch of renewals")
	}
	for i := range batch {
		if err != nil {
			done(i, err)
			continue
		}
		done(i, said[i])
	}
}

// Break asks the engine to end a hold.
func (l *link) Break(ctx context.Context, key driver.Key, token uint64) error {
	said, err := exchange(ctx, l, "break", key.Name, func() error { return l.w.engine.breakHolds(l, key, token) })
	if err != nil {
		return err
	}
	return said
}

// Locks fetches the whole list with one message.
func (l *link) Locks(ctx context.Context, prefix string) iter.Seq2[driver.LockInfo, error] {
	return func(yield func(driver.LockInfo, error) bool) {
		list, err := exchange(ctx, l, "list", prefix, func() []driver.LockInfo { return l.w.engine.list(prefix) })
		if err != nil {
			yield(driver.LockInfo{}, err)
			return
		}
		for _, info := range list {
			if !yield(info, nil) {
				return
			}
		}
	}
}
