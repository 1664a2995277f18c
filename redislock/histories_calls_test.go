package redislock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// twin is one call of Acquire, Requeue, Convert or Adopt, made on both sides.
type twin struct {
	req    driver.Request
	client int
	give   *driver.Release // of a Requeue
	beside string          // of a Convert
	adopts string          // of an Adopt
	sides  [sides]*call
}

// call is a twin on one side.
type call struct {
	cancel context.CancelFunc
	queued chan struct{} // has a place; the engine says that somebody is in the way
	done   chan struct{} // closed when the answer is there
	grant  driver.Grant
	err    error
}

func (c *call) answered() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// losses counts how often the holders of each request were told that they lost it.
type losses struct {
	mu   sync.Mutex // guards told: engines tell in goroutines of their own
	told [sides]map[string]int
}

func newLosses() *losses {
	l := new(losses)
	for side := range l.told {
		l.told[side] = make(map[string]int)
	}
	return l
}

func (l *losses) note(side int, id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.told[side][id]++
}

func (l *losses) of(side int, id string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.told[side][id]
}

// begin makes a call on both sides, one after the other, and returns when each has been answered or put into the queue.
func (h *history) begin(w *twin) *twin {
	h.t.Helper()
	for side := range w.sides {
		c := h.launch(side, w)
		w.sides[side] = c
		select {
		case <-c.done:
		case <-c.queued:
		case <-time.After(patience):
			h.fail("%s of %s: no word", sideNames[side], w.req.ID)
		}
	}
	h.calls = append(h.calls, w)
	return w
}

func (h *history) launch(side int, w *twin) *call {
	ctx, cancel := context.WithCancel(h.t.Context())
	c := &call{cancel: cancel, queued: make(chan struct{}, 1), done: make(chan struct{})}
	r := w.req
	r.Waiting = func(*driver.HeldError) {
		select {
		case c.queued <- struct{}{}:
		default: // it is known
		}
	}
	r.Lost = func(driver.LostReason, error) { h.losses.note(side, r.ID) }
	e := h.engines[side][w.client]
	go func() { // ends with ctx, at the latest when the test does
		defer close(c.done)
		switch {
		case w.give != nil:
			c.grant, c.err = e.Requeue(ctx, w.give, &r)
		case w.beside != "":
			c.grant, c.err = e.Convert(ctx, w.beside, &r)
		case w.adopts != "":
			c.grant, c.err = e.Adopt(ctx, w.adopts, &r)
		default:
			c.grant, c.err = e.Acquire(ctx, &r)
		}
		if c.err == nil && c.grant.Lease < r.Lease { // a push, which the portable layer claims by a renewal at once
			h.pushed.Add(1)
			c.err = renewOne(ctx, e, renewalOf(&r, r.Lease))
		}
	}()
	return c
}

func renewalOf(r *driver.Request, lease time.Duration) driver.Renewal {
	return driver.Renewal{Key: r.Key, ID: r.ID, Lease: lease, Owner: r.Owner, Label: r.Label}
}

func renewOne(ctx context.Context, e driver.Renewer, r driver.Renewal) error {
	var answer error
	answers := 0
	e.Renew(ctx, []driver.Renewal{r}, func(_ int, err error) { answers, answer = answers+1, err })
	if answers != 1 {
		return fmt.Errorf("a renewal was answered %d times", answers)
	}
	return answer
}

// classes are what callers tell errors apart by.
var classes = []struct {
	word string
	is   error
}{
	{"unavailable", driver.ErrUnavailable},
	{"lost", driver.ErrLost},
	{"closed", driver.ErrClosed},
	{"unsupported", driver.ErrUnsupported},
	{"conflict", driver.ErrConflict},
	{"deadlock", driver.ErrDeadlock},
	{"nested", driver.ErrNested},
	{"not held", driver.ErrNotHeld},
	{"held", driver.ErrHeld},
	{"canceled", context.Canceled},
}

// class is the word for an outcome.
func class(err error) string {
	if err == nil {
		return "ok"
	}
	word := ""
	for _, c := range classes {
		if errors.Is(err, c.is) {
			word += c.word + " "
		}
	}
	if word == "" {
		return "another error: " + err.Error()
	}
	return word
}
