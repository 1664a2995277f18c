package redislock

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/servers"
)

// condHistory is a history of waits for the condition of one mutex.
type condHistory struct {
	*history
	key   driver.Key
	last  int
	waits map[string]*condTwin // that have not been given up, nor released
}

// condTwin is one wait on both sides.
type condTwin struct {
	client int
	cancel context.CancelFunc
	done   [sides]chan struct{}
}

func (h *condHistory) id() string {
	h.last++
	return fmt.Sprintf("c%d", h.last)
}

func (h *condHistory) request(id string) *driver.Request {
	return &driver.Request{
		Key: h.key, ID: id, Owner: "owner of " + id, Label: id, Weight: 1, Tokens: 1, Lease: longLease,
	}
}

// seen is who holds and who waits for the lock on one side, by label.
func (h *condHistory) seen(side int) (holder, all string) {
	h.t.Helper()
	ctx, cancel := h.bounded()
	defer cancel()
	info, err := h.engines[side][0].(driver.Looker).Look(ctx, h.key)
	if err != nil {
		h.fail("%s: Look: %v", sideNames[side], err)
	}
	for _, l := range info.Holders {
		holder = l.Label
	}
	all = "held by " + holder
	for _, w := range info.Waiters {
		all += ", then " + w.Label
	}
	return holder, all
}

// compare waits until both sides show the same, and returns who holds.
func (h *condHistory) compare() string {
	h.t.Helper()
	holder, want := h.seen(model)
	var got string
	soon(h.t.Context(), func() bool {
		_, got = h.seen(redis)
		return got == want
	})
	h.note("     %s", want)
	if got != want {
		h.fail("the model is %s, the server is %s", want, got)
	}
	return holder
}

// park takes the free lock and gives it up for a wait.
func (h *condHistory) park() {
	h.t.Helper()
	hold, id, client := h.id(), h.id(), h.draw(clients)
	ctx, cancel := context.WithCancel(h.t.Context())
	w := &condTwin{client: client, cancel: cancel}
	h.note("%s waits, by client %d", id, client)
	for side := range sides {
		e := h.engines[side][client]
		if _, err := e.Acquire(ctx, h.request(hold)); err != nil {
			h.fail("%s: %v", sideNames[side], err)
		}
		parked, done := make(chan struct{}), make(chan struct{})
		w.done[side] = done
		go func() { // ends with ctx, at the latest when the test does
			defer close(done)
			give := &driver.Release{Key: h.key, ID: hold, Horizon: longLease}
			_, _ = e.(driver.Conder).CondWait(ctx, give, h.request(id), func() { close(parked) })
		}()
		select {
		case <-parked:
		case <-time.After(patience):
			h.fail("%s: %s does not begin to wait", sideNames[side], id)
		}
	}
	h.waits[id] = w
}

// end gives up a wait, or undoes or releases a hold.
func (h *condHistory) end(id string, undo bool) {
	h.t.Helper()
	w := h.waits[id]
	delete(h.waits, id)
	h.note("%s ends, undo %v", id, undo)
	if undo {
		w.cancel()
	}
	for side := range sides {
		select {
		case <-w.done[side]:
		case <-time.After(patience):
			h.fail("%s: %s has not returned", sideNames[side], id)
		}
	}
	w.cancel()
	_ = h.both("release", func(ctx context.Context, side int) error {
		return h.engines[side][w.client].Release(ctx,
			&driver.Release{Key: h.key, ID: id, Horizon: longLease, Undo: undo})
	})
}

func (h *condHistory) step(holder string, signals *[]driver.Signal) {
	ids := make([]string, 0, len(h.waits))
	for id := range h.waits {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	switch n := h.draw(10); {
	case n < 4 && holder == "":
		h.park()
	case n < 4:
		h.end(holder, h.draw(4) == 0)
	case n < 6 && len(ids) > 0:
		h.end(ids[h.draw(len(ids))], true)
	default:
		s := driver.Signal{Key: h.key, ID: h.id(), All: h.draw(5) == 0, Horizon: longLease}
		if len(*signals) > 0 && h.draw(5) == 0 {
			s = (*signals)[h.draw(len(*signals))]
		}
		*signals = append(*signals, s)
		client := h.draw(clients)
		_ = h.both(fmt.Sprintf("signal %s, all %v", s.ID, s.All), func(ctx context.Context, side int) error {
			return h.engines[side][client].(driver.Conder).CondSignal(ctx, &s)
		})
	}
}

func TestHistory_OfConditions_IsThatOfTheModel(t *testing.T) {
	s := servers.RedisServer(t, nil)
	eachHistory(t, func(t *testing.T, seed uint64) {
		h := &condHistory{
			history: newHistory(t, openPushed, seed, s),
			key:     driver.Key{Kind: driver.KindMutex, Name: "x"}, waits: make(map[string]*condTwin),
		}
		var signals []driver.Signal
		holder := ""
		for range *historySteps {
			h.step(holder, &signals)
			holder = h.compare()
		}
	})
}
