package redislock

import (
	"context"
	"errors"
	"fmt"

	"github.com/interlock-go/interlock/driver"
)

// acquireAll asks for two mutexes in one step, on both sides. Sometimes one of the requests was undone before.
// What the server leaves to Acquire is tried there, and must come to the same.
func (h *history) acquireAll() {
	client := h.draw(clients)
	var twins []*twin
	for _, key := range h.keys {
		if key.Kind != driver.KindMutex || key.Name == "x" { // of another slot
			continue
		}
		r := h.request(key)
		r.Client, r.Named, r.Owner, r.LockDelay = fmt.Sprint("client ", client), false, "process "+r.ID, 0
		w := &twin{req: r, client: client}
		for side := range w.sides {
			w.sides[side] = &call{cancel: func() {}, done: make(chan struct{})}
		}
		twins, h.ids = append(twins, w), append(h.ids, w)
	}
	if h.draw(2) == 0 {
		twins[0], twins[1] = twins[1], twins[0]
	}
	if h.draw(8) == 0 {
		h.releaseBoth(undoOf(&twins[h.draw(len(twins))].req), h.draw(clients))
	}
	h.note("acquire %s and %s in one step, by client %d", twins[0].req.ID, twins[1].req.ID, client)
	for side := range sides {
		h.askAll(side, client, twins)
	}
	h.calls = append(h.calls, twins...)
}

// askAll makes the calls of the twins on one side as one.
func (h *history) askAll(side, client int, twins []*twin) {
	h.t.Helper()
	ctx, cancel := h.bounded()
	defer cancel()
	rs := make([]*driver.Request, len(twins))
	for i, w := range twins {
		r := w.req
		r.Lost = func(driver.LostReason, error) { h.losses.note(side, r.ID) }
		rs[i] = &r
	}
	grants, err := h.engines[side][client].AcquireAll(ctx, rs)
	if side == redis && errors.Is(err, driver.ErrUnsupported) {
		grants, err = h.oneByOne(ctx, client, rs)
	}
	for i, w := range twins {
		c := w.sides[side]
		if c.err = err; err == nil {
			c.grant = grants[i]
		}
		close(c.done)
	}
}

// oneByOne tries the requests as the portable layer does when the server leaves them to Acquire.
func (h *history) oneByOne(ctx context.Context, client int, rs []*driver.Request) (grants []driver.Grant, err error) {
	h.note("     the server leaves them to acquire")
	e := h.engines[redis][client]
	for i, r := range rs {
		r.Try = true
		g, err := e.Acquire(ctx, r)
		if err != nil {
			for _, taken := range rs[:i] {
				if err := e.Release(ctx, releaseOf(taken)); err != nil {
					h.fail("release of %s: %v", taken.ID, err)
				}
			}
			return nil, err
		}
		grants = append(grants, g)
	}
	return grants, nil
}
