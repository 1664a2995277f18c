package redislock

import (
	"context"
	"testing"
	"time"

	"github.com/interlock-go/interlock/internal/pace"
	"github.com/interlock-go/interlock/internal/servers"
)

// A part of a history with leases that end: first steps that take a moment, some of them holds with short leases, which
// end one after the other; whenever one has ended, both sides must say the same.
const (
	shortParts    = 2
	shortLeases   = 3
	firstShort    = 600 * time.Millisecond
	betweenShorts = 300 * time.Millisecond
	// slack is by how much the machine may be late. After a longer halt a part of a history says nothing.
	slack = 100 * time.Millisecond
)

// stalled is the panic of a history whose failure may be due to a machine that stood still.
type stalled struct{ differs string } // empty if it was not compared

// vigil notices when the machine stands still for longer than a history bears: this process or a server.
type vigil struct {
	clock *pace.Clock
	bears time.Duration
}

func (v *vigil) failed() bool { return v.clock.Longest() > v.bears }

// quickStep does one thing that takes no time.
func (h *history) quickStep() {
	switch n := h.draw(10); {
	case n < 5:
		h.acquire()
	case n == 5:
		h.acquireAll()
	case n < 8:
		h.release()
	case n == 8:
		h.renew()
	default:
		h.requeue()
	}
}

// shortPart is one part, with what is left of those before.
func (h *history) shortPart() {
	h.t.Helper()
	h.turn()
	begin := time.Now()
	h.until = begin.Add(firstShort)
	var short []*twin
	for i := range shortLeases {
		for range 2 + h.draw(3) {
			h.quickStep()
			h.settle()
		}
		r := h.request(h.key())
		r.Try, r.Lease = true, firstShort+time.Duration(i)*betweenShorts
		short = append(short, h.ask(r, nil, ""))
		h.settle()
	}
	if time.Since(begin) > slack {
		panic(stalled{}) // the leases might end in another order
	}
	for i, w := range short {
		h.until = begin.Add(firstShort + time.Duration(i+1)*betweenShorts)
		if i == len(short)-1 {
			h.until = time.Time{}
		}
		// All began within slack, so the next one does not end soon after this pause.
		h.pause(time.Until(begin.Add(firstShort + time.Duration(i)*betweenShorts + slack + slack/2)))
		h.note("the lease of %s has ended", w.req.ID)
		h.settle()
		if h.draw(2) == 0 {
			h.releaseOver(w)
			h.settle()
		}
	}
}

// releaseOver releases or renews what has ended, unless it was renewed meanwhile.
func (h *history) releaseOver(w *twin) {
	if h.draw(2) == 0 {
		_ = h.both("renew "+w.req.ID, func(ctx context.Context, side int) error {
			return renewOne(ctx, h.engines[side][w.client], renewalOf(&w.req, longLease))
		})
		return
	}
	h.releaseBoth(releaseOf(&w.req), w.client)
}

// pause lets leases run.
func (h *history) pause(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-h.t.Context().Done():
	}
}

// unlessStalled runs a history. It reports false if the machine stood still, and what differed then.
func unlessStalled(f func()) (complete bool, differs string) {
	defer func() {
		if p := recover(); p != nil {
			s, is := p.(stalled)
			if !is {
				panic(p)
			}
			differs = s.differs
		}
	}()
	f()
	return true, ""
}

func TestHistory_WithLeasesThatEnd_IsThatOfTheModel(t *testing.T) {
	s := servers.RedisServer(t, nil)
	eachHistory(t, func(t *testing.T, seed uint64) {
		open := openPlain
		if seed%2 == 0 {
			open = openPushed
		}
		h := newHistory(t, open, seed, s)
		h.watch.bears = slack
		for range shortParts {
			h.shortPart()
		}
		h.giveAllBack()
	})
}
