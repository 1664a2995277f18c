package redislock

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// soon returns when is does, or after the test's patience.
func soon(ctx context.Context, is func() bool) {
	pause := time.NewTicker(2 * time.Millisecond)
	defer pause.Stop()
	end := time.NewTimer(patience)
	defer end.Stop()
	for !is() {
		select {
		case <-pause.C:
		case <-end.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// step does one thing on both sides.
func (h *history) step() {
	switch n := h.draw(100); {
	case n < 30:
		h.acquire()
	case n < 34:
		h.acquireAll()
	case n < 41:
		h.convert()
	case n < 58:
		h.release()
	case n < 64:
		h.undo()
	case n < 70:
		h.giveUp()
	case n < 75:
		h.renew()
	case n < 79:
		h.breakOne()
	case n < 85:
		h.requeue()
	case n < 90:
		h.adopt()
	case n < 95:
		h.resize()
	default:
		h.copy()
	}
}

func (h *history) request(key driver.Key) driver.Request {
	id := fmt.Sprintf("r%d", len(h.ids))
	r := driver.Request{
		Key: key, ID: id, Owner: "process " + id, Label: id, Weight: 1, Tokens: 1 + h.draw(4), Lease: h.lease(),
		Try: h.draw(5) == 0,
	}
	if h.draw(10) < h.named {
		r.Owner, r.Named = string(rune('A'+h.draw(3))), true
	}
	if h.draw(4) == 0 {
		r.LockDelay = longLease // after a break, or after a short lease
	}
	switch key.Kind {
	case driver.KindRWMutex:
		r.Mode = driver.Mode(h.draw(3))
	case driver.KindSemaphore:
		r.Mode, r.Limit = driver.Shared, h.limit+h.draw(10)/9
		r.Weight = 1 + h.draw(min(3, r.Limit))
		if h.draw(8) == 0 {
			r.Mode = driver.Exclusive
		}
	}
	return r
}

// ask begins the first call of a request.
func (h *history) ask(r driver.Request, give *driver.Release, beside string) *twin {
	client := h.draw(clients)
	r.Client = fmt.Sprint("client ", client)
	h.note("acquire %s %q %s: mode %d, owner %q named %v, try %v, %d of %d, by client %d, giving %v, beside %q",
		r.Kind, r.Name, r.ID, r.Mode, r.Owner, r.Named, r.Try, r.Weight, r.Limit, client, given(give), beside)
	w := h.begin(&twin{req: r, client: client, give: give, beside: beside})
	h.ids = append(h.ids, w)
	return w
}

func given(give *driver.Release) string {
	if give == nil {
		return "nothing"
	}
	return give.ID
}

func (h *history) acquire() { h.ask(h.request(h.key()), nil, "") }

// convert asks beside a hold, mostly a live one, and mostly for a write.
func (h *history) convert() {
	w := h.pick()
	if w == nil {
		return
	}
	r := h.request(w.req.Key)
	if h.draw(2) == 0 {
		r.Mode, r.Limit, r.Weight = driver.Exclusive, 0, 1
	}
	r.Owner, r.Named = w.req.Owner, w.req.Named
	h.ask(r, nil, w.req.ID)
}

// key is mostly the one that is crowded in this chapter.
func (h *history) key() driver.Key {
	if h.draw(3) > 0 {
		return h.crowded
	}
	return h.keys[h.draw(len(h.keys))]
}

// alive returns the requests that hold or wait in the model.
func (h *history) alive(holds, waits bool) []*twin {
	var labels []string
	for _, info := range h.locks(model) {
		for _, l := range info.Holders {
			if holds {
				labels = append(labels, l.Label)
			}
		}
		for _, w := range info.Waiters {
			if waits {
				labels = append(labels, w.Label)
			}
		}
	}
	return slices.DeleteFunc(slices.Clone(h.ids), func(w *twin) bool { return !slices.Contains(labels, w.req.Label) })
}

// pick mostly takes a holder, sometimes any request that does not wait.
func (h *history) pick() *twin {
	from := h.alive(true, false)
	if len(from) == 0 || h.draw(6) == 0 {
		waits := h.alive(false, true)
		from = slices.DeleteFunc(slices.Clone(h.ids), func(w *twin) bool { return slices.Contains(waits, w) })
	}
	if len(from) == 0 {
		return nil
	}
	return from[h.draw(len(from))]
}

// user is mostly the client that asked, sometimes another one.
func (h *history) user(w *twin) int {
	if h.draw(5) == 0 {
		return h.draw(clients)
	}
	return w.client
}

// both does one thing on both sides and compares the errors.
func (h *history) both(what string, f func(ctx context.Context, side int) error) error {
	h.t.Helper()
	ctx, cancel := h.bounded()
	defer cancel()
	var errs [sides]error
	for side := range errs {
		errs[side] = f(ctx, side)
	}
	h.note("%s: %s", what, class(errs[model]))
	if class(errs[model]) != class(errs[redis]) {
		h.fail("%s says %v, %s says %v", sideNames[model], errs[model], sideNames[redis], errs[redis])
	}
	return errs[model]
}

func (h *history) releaseBoth(r *driver.Release, client int) {
	h.t.Helper()
	_ = h.both(
		fmt.Sprintf("release %s %q %s: undo %v, keep %v, by client %d", r.Kind, r.Name, r.ID, r.Undo, r.Keep, client),
		func(ctx context.Context, side int) error { return h.engines[side][client].Release(ctx, r) })
}

func releaseOf(r *driver.Request) *driver.Release {
	return &driver.Release{Key: r.Key, ID: r.ID, Horizon: longLease}
}

func undoOf(r *driver.Request) *driver.Release {
	return &driver.Release{Key: r.Key, ID: r.ID, Horizon: longLease, Undo: true}
}

func (h *history) release() {
	w := h.pick()
	if w == nil {
		return
	}
	r := releaseOf(&w.req)
	if h.draw(8) == 0 {
		r.Keep = longLease
	}
	h.releaseBoth(r, h.user(w))
}

// undo takes away what is held or over, or refuses a request before it comes.
func (h *history) undo() {
	w := h.pick()
	if w != nil && h.draw(4) > 0 {
		h.releaseBoth(undoOf(&w.req), h.user(w))
		return
	}
	r := h.request(h.key())
	h.releaseBoth(undoOf(&r), h.draw(clients))
	h.ask(r, nil, "")
}

// giveUp ends a wait: the context ends and the request is undone. Sometimes it is undone while it still waits.
func (h *history) giveUp() {
	from := h.alive(false, true)
	if len(from) == 0 {
		return
	}
	w := from[h.draw(len(from))]
	if h.draw(8) > 0 {
		h.cancel(w.req.ID)
	}
	h.releaseBoth(undoOf(&w.req), h.user(w))
}

// cancel ends the contexts of all calls of a request, and returns when they have been answered.
func (h *history) cancel(id string) {
	h.t.Helper()
	for _, w := range h.calls {
		if w.req.ID == id {
			for _, c := range w.sides {
				c.cancel()
			}
			h.note("cancel %s", id)
			h.compareAnswers(w)
		}
	}
	h.calls = slices.DeleteFunc(h.calls, func(w *twin) bool { return w.req.ID == id })
}

func (h *history) renew() {
	w := h.pick()
	if w == nil {
		return
	}
	client := h.user(w)
	h.renamed[w.req.Label] = h.renamed[w.req.Label] || client != w.client
	_ = h.both(fmt.Sprintf("renew %s %q %s by client %d", w.req.Kind, w.req.Name, w.req.ID, client),
		func(ctx context.Context, side int) error {
			return renewOne(ctx, h.engines[side][client], renewalOf(&w.req, longLease))
		})
}

// breakOne breaks by a token that was given, of a hold or of what is over by now.
func (h *history) breakOne() {
	w := h.pick()
	if w == nil || w.sides[model].err != nil {
		return
	}
	client := h.draw(clients)
	last := uint64(min(w.sides[model].grant.Tokens, w.sides[redis].grant.Tokens) - 1)
	_ = h.both(fmt.Sprintf("break %s %q, which %s holds", w.req.Kind, w.req.Name, w.req.ID),
		func(ctx context.Context, side int) error {
			return h.engines[side][client].Break(ctx, w.req.Key, w.sides[side].grant.Token+last)
		})
}

func (h *history) requeue() {
	w := h.pick()
	if w == nil {
		return
	}
	r := h.request(w.req.Key)
	r.Mode, r.Named, r.Owner, r.Try, r.Limit, r.Weight = driver.Exclusive, false, "process "+r.ID, false, 0, 1
	h.ask(r, releaseOf(&w.req), "")
}

// copy sends a request again that waits or was granted once. A copy of one that is over is sent by
// the client that knows that.
func (h *history) copy() {
	from := slices.DeleteFunc(slices.Clone(h.ids), func(w *twin) bool {
		return w.sides[model].answered() && w.sides[model].err != nil
	})
	if waits := h.alive(false, true); len(waits) > 0 && h.draw(4) == 0 {
		from = waits
	} else if holds := h.alive(true, false); len(holds) > 0 && h.draw(4) > 0 {
		from = holds
	}
	if len(from) == 0 {
		return
	}
	w := from[h.draw(len(from))]
	again := &twin{req: w.req, client: w.client, beside: w.beside, adopts: w.adopts}
	again.req.Try = h.draw(3) > 0
	h.copied[w.req.ID] = true
	h.note("copy of %s, try %v, by client %d", again.req.ID, again.req.Try, again.client)
	h.begin(again)
}

// giveAllBack ends everything. Nothing must be left on the server but floors of tokens, and tombstones that end.
func (h *history) giveAllBack() {
	h.t.Helper()
	for _, w := range h.alive(true, true) {
		h.cancel(w.req.ID)
		h.releaseBoth(undoOf(&w.req), h.user(w))
		h.settle()
	}
	h.settle()
	if len(h.calls) > 0 {
		h.fail("%d calls wait for nothing", len(h.calls))
	}
	h.checkKeys()
}

// checkKeys looks at what is left on all servers.
func (h *history) checkKeys() {
	h.t.Helper()
	ctx, cancel := h.bounded()
	defer cancel()
	nodes, err := h.engines[redis][0].(*Driver).conn.Nodes(ctx)
	if err != nil {
		h.fail("Nodes: %v", err)
	}
	for _, node := range nodes {
		found, err := node.Do(ctx, "KEYS", globQuote(h.prefix)+"*")
		if err != nil {
			h.fail("KEYS: %v", err)
		}
		keys, _ := found.([]any)
		for _, found := range keys {
			key := fmt.Sprint(found)
			lasts, err := node.Do(ctx, "PTTL", key)
			n, _ := lasts.(int64)
			// which has ended since it was listed
			isTomb := strings.HasPrefix(key, h.prefix+"gone:{") && (n > 0 || n == -2)
			if err != nil || !isTomb && !strings.HasPrefix(key, h.prefix+"floor:{") && key != h.prefix+"alive" {
				h.fail("left on the server: %s for %v ms (%v)", key, lasts, err)
			}
		}
	}
}
