package drivertest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// The promise about hanging servers: a server that answers nothing keeps nobody longer than the context, and no call
// claims to know what it cannot. Afterwards everything goes on.

// hungFor is the time limit of a call to a server that hangs.
const hungFor = 200 * time.Millisecond

func hanging() []behaviour {
	able := func(sentence string, run func(*trial)) behaviour {
		return behaviour{sentence: sentence, run: run, wants: hangs}
	}
	return []behaviour{
		able("a call to a server that hangs returns with its context, and does not know the outcome", hungCallsReturn),
		able("a wait that is cancelled while the server hangs returns at once", hungWaitReturns),
		able("after the server has hung, what was asked of it can be undone, and all goes on", allGoesOnAfterwards),
	}
}

// hang makes the server hang until resume is called, or until the behaviour ends.
func (tr *trial) hang() (resume func()) {
	tr.Helper()
	resume = sync.OnceFunc(tr.h.Hang(tr.t))
	tr.Cleanup(resume)
	return resume
}

// hungCall is one call to a server that hangs.
type hungCall struct {
	what string
	call func(ctx context.Context) error
}

// hungPlace is what the calls are about. Each has a lock of its own, so that no call hides what becomes of another.
type hungPlace struct {
	c                      *client
	renewed, ended, passed *hold
	asked                  []*driver.Request // requests that may be granted late
}

// hungPlace takes what the calls need, before the server hangs.
func (tr *trial) hungPlace(c *client) *hungPlace {
	tr.Helper()
	return &hungPlace{
		c:       c,
		renewed: c.take(c.ask(tr.another("-renewed"))),
		ended:   c.take(c.ask(tr.another("-ended"))),
		passed:  c.take(c.ask(tr.another("-passed"))),
	}
}

// asks returns a request, and notes it for putAway.
func (p *hungPlace) asks(suffix string) *driver.Request {
	r := p.c.ask(p.c.tr.another(suffix))
	p.asked = append(p.asked, r)
	return r
}

// calls returns a call for each thing that the driver can be asked.
func (p *hungPlace) calls() []hungCall {
	d, tr := p.c.d, p.c.tr
	fresh, tried, again := p.asks("-acquired"), p.asks("-tried"), p.c.ask(p.passed.r.Key)
	tried.Try = true
	calls := []hungCall{
		{"acquire", func(ctx context.Context) error { return errorOf(d.Acquire(ctx, fresh)) }},
		{"acquire of a try", func(ctx context.Context) error { return errorOf(d.Acquire(ctx, tried)) }},
		{"release", func(ctx context.Context) error { return d.Release(ctx, p.ended.give()) }},
	}
	if renewer, has := d.(driver.Renewer); has && tr.traits.Lifetime == driver.Leases {
		calls = append(calls, hungCall{"renewal", func(ctx context.Context) error {
			return renewOne(ctx, renewer, driver.Renewal{Key: p.renewed.r.Key, ID: p.renewed.r.ID, Lease: longLease})
		}})
	}
	if _, has := d.(driver.Requeuer); has {
		p.asked = append(p.asked, again)
		calls = append(calls, hungCall{"requeue", func(ctx context.Context) error {
			return errorOf(p.passed.requeueIn(ctx, again))
		}})
	}
	if all, has := d.(driver.MultiAcquirer); has && slices.Contains(tr.offers, bundles) {
		several := p.c.askAll(tr.several())
		p.asked = append(p.asked, several...)
		calls = append(calls, hungCall{"acquire of several", func(ctx context.Context) error {
			_, err := all.AcquireAll(ctx, several)
			return err
		}})
	}
	if inspector, has := d.(driver.Inspector); has && tr.lists() {
		calls = append(calls, hungCall{"listing", func(ctx context.Context) error {
			for _, err := range inspector.Locks(ctx, tr.name) {
				if err != nil {
					return err
				}
			}
			return nil
		}})
	}
	_, lacksBreak := tr.traits.Lacking(driver.Breaking)
	if breaker, has := d.(driver.Breaker); has && !lacksBreak {
		calls = append(calls, hungCall{"break", func(ctx context.Context) error {
			return breaker.Break(ctx, tr.another("-free"), 1) // a free lock: it does nothing if it arrives late
		}})
	}
	return calls
}

func errorOf(_ driver.Grant, err error) error { return err }

// callAll makes all calls at once, each with a time limit, and returns when each has returned or is late.
func (tr *trial) callAll(calls []hungCall) {
	tr.Helper()
	var all sync.WaitGroup
	for _, c := range calls {
		ctx, cancel := context.WithTimeout(tr.Context(), hungFor)
		returned := make(chan error, 1)
		go func() { // ends with the call: late, if the driver waits for the server, which goes on after the behaviour
			defer cancel()
			returned <- c.call(ctx)
		}()
		all.Go(func() {
			timeout := time.NewTimer(hungFor + prompt)
			defer timeout.Stop()
			select {
			case err := <-returned:
				tr.isUnknown(c.what, err)
			case <-timeout.C:
				tr.Errorf("%s: it has not returned %v after its context ended, with the server hanging", c.what, prompt)
			}
		})
	}
	all.Wait()
}

// isUnknown fails unless err says that there was no answer, and no more. A definite error, or a loss, would be a guess.
func (tr *trial) isUnknown(what string, err error) {
	tr.Helper()
	ended := errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
	switch {
	case !ended && !errors.Is(err, driver.ErrUnavailable):
		tr.Errorf("%s: the server hangs, and it says %q, want an error that matches %q or the context's",
			what, text(err), driver.ErrUnavailable)
	case driver.IsDefinite(err), errors.Is(err, driver.ErrLost), errors.Is(err, driver.ErrNotHeld):
		tr.Errorf("%s: the server hangs, and it says %q, which nobody can know", what, err)
	}
}

// Every call of the driver is made while the server hangs.
func hungCallsReturn(tr *trial) {
	a := tr.client()
	p := tr.hungPlace(a)
	calls := p.calls()
	resume := tr.hang()
	tr.callAll(calls)
	resume()
	p.putAway()
}

// The wait had begun before the server hung, so its request cannot be taken back.
func hungWaitReturns(tr *trial) {
	a, b, c := tr.client(), tr.client(), tr.client()
	h := a.take(a.ask(tr.mutex()))
	w := b.queue(b.ask(tr.mutex()))
	resume := tr.hang()
	w.cancel()
	if !w.ends(prompt) {
		tr.Errorf("a wait that was cancelled while the server hangs has not returned within %v", prompt)
		resume()
		return
	}
	tr.isUnknown("a cancelled wait", w.err)
	resume()
	b.undoAfterwards(w.r)
	h.releaseAfterwards()
	c.findsFreeAfterwards(tr.mutex())
}

// allGoesOnAfterwards looks at the hold that was there before, and at what others find. A connection that has missed an
// answer must not be used as if it had not.
func allGoesOnAfterwards(tr *trial) {
	a, b := tr.client(), tr.client()
	p := tr.hungPlace(a)
	calls := p.calls()
	resume := tr.hang()
	tr.callAll(calls)
	resume()
	if tr.traits.Lifetime == driver.Leases {
		tr.until("renewal after the server has hung", func() error {
			err := a.renew(p.renewed.r.Key, p.renewed.r.ID, longLease)
			if errors.Is(err, driver.ErrLost) {
				tr.Fatalf("a hold was lost while the server hung, long before the end of its lease: %v", err)
			}
			return err
		})
	}
	keys := []driver.Key{p.renewed.r.Key, p.ended.r.Key, p.passed.r.Key}
	for _, r := range p.asked {
		keys = append(keys, r.Key)
	}
	p.putAway()
	for _, key := range keys {
		b.findsFreeAfterwards(key)
		a.findsFreeAfterwards(key)
	}
}

// putAway releases what is held, and undoes what may be.
func (p *hungPlace) putAway() {
	p.c.tr.Helper()
	for _, h := range []*hold{p.renewed, p.ended, p.passed} {
		h.releaseAfterwards()
	}
	for _, r := range p.asked {
		p.c.undoAfterwards(r)
	}
}

// releaseAfterwards releases h until the outcome is known, whatever it is: a release may have arrived late, and a
// session may have ended.
func (h *hold) releaseAfterwards() {
	tr := h.c.tr
	tr.Helper()
	tr.until("release after the server has hung", func() error {
		err := h.c.end(h.r.Key, h.r.ID)
		if errors.Is(err, driver.ErrLost) {
			return nil
		}
		return err
	})
}

// undoAfterwards is undo, repeated until it succeeds.
func (c *client) undoAfterwards(r *driver.Request) {
	c.tr.Helper()
	c.tr.until("undo after the server has hung", func() error {
		ctx, cancel := c.tr.bound()
		defer cancel()
		return c.d.Release(ctx, &driver.Release{Key: r.Key, ID: r.ID, Undo: true, Horizon: longLease})
	})
}

// findsFreeAfterwards is findsFree, for a client that may have to connect again first.
func (c *client) findsFreeAfterwards(key driver.Key) {
	c.tr.Helper()
	var last error
	for end := time.Now().Add(c.tr.h.Patience); time.Now().Before(end); c.tr.pass(5 * time.Millisecond) {
		r := c.ask(key)
		r.Try = true
		h, err := c.acquire(r)
		if err == nil {
			h.releaseAfterwards()
			return
		}
		if last = err; errors.Is(err, driver.ErrHeld) {
			break
		}
		c.undoAfterwards(r)
	}
	c.tr.Fatalf("%s: after the server has hung and all was undone, a try of %s %q says: %v",
		c.name, key.Kind, key.Name, last)
}
