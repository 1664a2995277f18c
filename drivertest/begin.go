package drivertest

import (
	"context"
	"errors"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/drivertest/faulty"
)

func beginning() []behaviour {
	able := func(sentence string, run func(*trial)) behaviour {
		return behaviour{sentence: sentence, run: run, wants: begins}
	}
	return []behaviour{
		able("begin answers a free lock with the grant", beginOfAFreeLock),
		able("begin answers a held lock at once, and has told who is in the way", beginOfAHeldLock),
		able("begin answers a try with a definite refusal", beginOfATry),
		{
			sentence: "acquire goes on in the place that begin has got", run: acquireGoesOnInPlace,
			wants: begins, needs: needing(driver.Order),
		},
		able("the end of begin's context does not end a wait that has begun", beginsContextMayEnd),
		able("a grant that comes between begin and acquire waits for the acquire", grantBetweenBeginAndAcquire),
		able("what has begun and is not gone on with is undone", abandonedBeginIsUndone),
		able("begin whose context has ended can be undone", beginWithEndedContext),
		able("acquire goes on from a begin that got no answer", acquireAfterUnansweredBegin),
	}
}

// begin asks for r as far as the engine answers at once.
func (c *client) begin(ctx context.Context, r *driver.Request) (h *hold, waits bool, err error) {
	g, waits, err := c.d.(driver.Starter).Begin(ctx, r)
	if err != nil || waits {
		return nil, waits, err
	}
	return &hold{c: c, r: r, g: g, back: time.Now()}, false, nil
}

// begins asks for r and fails unless the engine answers that it is queued.
func (c *client) begins(ctx context.Context, r *driver.Request) {
	c.tr.Helper()
	ctx, cancel := context.WithCancel(ctx)
	c.tr.Cleanup(cancel) // and not now: that is a behaviour of its own
	var h *hold
	var waits bool
	var err error
	returned := make(chan struct{})
	go func() { // ends with Begin, at the latest when the behaviour does
		defer close(returned)
		h, waits, err = c.begin(ctx, r)
	}()
	timeout := time.NewTimer(c.tr.h.Patience)
	defer timeout.Stop()
	select {
	case <-returned:
	case <-timeout.C:
		c.tr.Fatalf("%s: begin of a held lock has not returned within %v", c.name, c.tr.h.Patience)
	}
	switch {
	case err != nil:
		c.tr.Fatalf("%s: begin of a held lock says %v, want that it waits", c.name, err)
	case !waits:
		h.abandon()
		c.tr.Fatalf("%s: begin of a held lock was granted", c.name)
	}
}

// begun is begins with a context that lasts for the whole behaviour.
func (c *client) begun(r *driver.Request) {
	c.tr.Helper()
	c.begins(c.tr.Context(), r)
}

// goesOn acquires what has begun.
func (c *client) goesOn(r *driver.Request) *wait { return c.start(copyOf(r)) }

func beginOfAFreeLock(tr *trial) {
	a, b := tr.client(), tr.client()
	for range 3 {
		r := a.ask(tr.mutex())
		r.Waiting = func(held *driver.HeldError) { tr.Errorf("Waiting was called for a free lock: %v", held) }
		ctx, cancel := tr.bound()
		h, waits, err := a.begin(ctx, r)
		cancel()
		if err != nil || waits {
			tr.Fatalf("begin of a free lock: waits is %v, %s, want the grant", waits, text(err))
		}
		if g := h.g; g.Tokens < 1 || g.Token == 0 || g.Nonce == "" || g.Sent.After(h.back) {
			tr.Errorf("begin was granted %+v, want tokens, a nonce, and Sent before it returned, as of an acquire", g)
		}
		b.findsHeld(tr.mutex(), "after it was granted by begin")
		h.release()
		b.findsFree(tr.mutex(), "after the release of what begin was granted")
	}
}

func beginOfAHeldLock(tr *trial) {
	a, b := tr.client(), tr.client()
	h := a.take(a.ask(tr.mutex()))
	r := b.ask(tr.mutex())
	told := make(chan *driver.HeldError, 8)
	r.Waiting = func(held *driver.HeldError) {
		select {
		case told <- held:
		default: // nobody reads so many
		}
	}
	b.begun(r)
	select {
	case held := <-told:
		if held == nil || held.Kind != driver.KindMutex || held.Name != tr.name {
			tr.Errorf("Waiting was called with %+v, want the kind and the name of the lock", held)
		}
	default:
		tr.Errorf("begin says that the request waits, and has not called Waiting")
	}
	w := b.goesOn(r)
	w.stillWaits("while the lock is held")
	h.release()
	w.granted("after the release").release()
	a.findsFree(tr.mutex(), "in the end")
}

func beginOfATry(tr *trial) {
	a, b := tr.client(), tr.client()
	h := a.take(a.ask(tr.mutex()))
	r := b.ask(tr.mutex())
	r.Try = true
	ctx, cancel := tr.bound()
	defer cancel()
	_, waits, err := b.begin(ctx, r)
	if waits || !errors.Is(err, driver.ErrHeld) || !driver.IsDefinite(err) {
		tr.Fatalf("begin of a try of a held lock: waits is %v, %q, want a definite ErrHeld", waits, text(err))
	}
	h.release()
	a.findsFree(tr.mutex(), "after a try that was refused")
}

func acquireGoesOnInPlace(tr *trial) {
	a, b, c := tr.client(), tr.client(), tr.client()
	h := a.take(a.ask(tr.mutex()))
	r := b.ask(tr.mutex())
	b.begun(r)
	behind := c.queue(c.ask(tr.mutex()))
	// It is not told again who is in the way, so nothing says when it has gone on.
	w := b.goesOn(r)
	tr.pass(settle)
	h.release()
	first := w.granted("before who came after begin")
	behind.stillWaits("behind who has begun before")
	first.release()
	behind.granted("after who has begun before").release()
	a.findsFree(tr.mutex(), "in the end")
}

func beginsContextMayEnd(tr *trial) {
	a, b, c := tr.client(), tr.client(), tr.client()
	h := a.take(a.ask(tr.mutex()))
	r := b.ask(tr.mutex())
	ctx, cancel := context.WithCancel(tr.Context())
	b.begins(ctx, r)
	cancel()
	tr.pass(settle)
	h.release() // nothing else is asked for in between, so the place is the only thing that can be lost
	tr.pass(settle)
	c.findsHeld(tr.mutex(), "after the release, with a wait that has begun")
	b.goesOn(r).granted("after the context of begin has ended").release()
	c.findsFree(tr.mutex(), "in the end")
}

func grantBetweenBeginAndAcquire(tr *trial) {
	a, b := tr.client(), tr.client()
	h := a.take(a.ask(tr.mutex()))
	r := b.ask(tr.mutex())
	b.begun(r)
	h.release()
	tr.pass(settle)
	b.goesOn(r).granted("after the release that came before it").release()
	a.findsFree(tr.mutex(), "in the end")
}

func abandonedBeginIsUndone(tr *trial) {
	a, b, c := tr.client(), tr.client(), tr.client()
	abandon := []struct {
		when string
		how  func(r *driver.Request)
	}{
		{"a begin that was undone", func(r *driver.Request) { b.undo(r) }},
		{"a begin whose acquire was cancelled and undone", func(r *driver.Request) {
			b.goesOn(r).stop()
			b.undo(r)
		}},
	}
	for _, way := range abandon {
		h := a.take(a.ask(tr.mutex()))
		r := b.ask(tr.mutex())
		b.begun(r)
		behind := c.queue(c.ask(tr.mutex()))
		way.how(r)
		h.release()
		behind.granted("behind " + way.when).release()
		a.findsFree(tr.mutex(), "after "+way.when)
	}
	h := a.take(a.ask(tr.mutex()))
	r := b.ask(tr.mutex())
	b.begun(r)
	h.release()
	tr.pass(settle)
	b.undo(r)
	a.findsFree(tr.mutex(), "after a begin was granted and undone")
}

func beginWithEndedContext(tr *trial) {
	a, b := tr.client(), tr.client()
	ctx, cancel := context.WithCancel(tr.Context())
	cancel()
	r := a.ask(tr.mutex())
	if _, waits, err := a.begin(ctx, r); err == nil {
		tr.Fatalf("begin with a context that has ended: waits is %v and no error", waits)
	}
	a.undo(r)
	b.findsFree(tr.mutex(), "after a begin whose context had ended")
}

// acquireAfterUnansweredBegin has every begin lose its way back, so that nobody knows whether it was granted or queued.
func acquireAfterUnansweredBegin(tr *trial) {
	a, b := tr.behind(faulty.Rule{Op: faulty.Begin, Drop: faulty.Reply}), tr.client()
	unanswered := func() *driver.Request {
		r := a.ask(tr.mutex())
		ctx, cancel := tr.bound()
		defer cancel()
		_, _, err := a.begin(ctx, r)
		tr.mustMatch(err, driver.ErrUnavailable, "a begin that gets no answer")
		return r
	}
	r := unanswered()
	b.findsHeld(tr.mutex(), "after a begin that got no answer")
	a.goesOn(r).granted("after a begin that was granted without an answer").release()
	b.findsFree(tr.mutex(), "after one release")

	h := b.take(b.ask(tr.mutex()))
	w := a.goesOn(unanswered())
	w.stillWaits("while the lock is held")
	h.release()
	w.granted("after a begin that was queued without an answer").release()
	b.findsFree(tr.mutex(), "in the end")
}
