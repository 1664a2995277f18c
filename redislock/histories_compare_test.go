package redislock

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/interlock-go/interlock/driver"
)

var sideNames = [sides]string{"the model", "the server"}

// pairs are the tokens that both sides gave for the same grants of one lock.
type pairs struct{ list [][sides]uint64 }

// add notes a pair, and says what is wrong with it: both sides must give the same number again, or both a new
// one, and in the same order.
func (p *pairs) add(a, b uint64) error {
	at, known := slices.BinarySearchFunc(p.list, a, func(pair [sides]uint64, a uint64) int {
		return cmp.Compare(pair[model], a)
	})
	switch {
	case known && p.list[at][redis] != b:
		return fmt.Errorf("the same grant has token %d and %d on the server", p.list[at][redis], b)
	case known:
		return nil
	case at > 0 && p.list[at-1][redis] >= b:
		return fmt.Errorf("token %d of the server must be above %d", b, p.list[at-1][redis])
	case at < len(p.list) && p.list[at][redis] <= b:
		return fmt.Errorf("token %d of the server must be below %d", b, p.list[at][redis])
	}
	p.list = slices.Insert(p.list, at, [sides]uint64{a, b})
	return nil
}

func (h *history) pairsOf(key driver.Key) *pairs {
	p := h.tokens[key]
	if p == nil {
		p = new(pairs)
		h.tokens[key] = p
	}
	return p
}

// settle waits until both sides have answered the same calls, and compares all that can be seen.
func (h *history) settle() {
	h.t.Helper()
	h.begun = time.Now()
	waiting := make(map[string]bool)
	for _, info := range h.locks(model) {
		for _, w := range info.Waiters {
			waiting[w.Label] = true
		}
	}
	var open []*twin
	for _, w := range h.calls {
		if waiting[w.req.Label] && !w.sides[model].answered() {
			open = append(open, w)
			continue
		}
		h.compareAnswers(w)
	}
	h.calls = open
	h.compareLocks()
	for _, w := range open {
		if w.sides[redis].answered() {
			h.fail("%s waits in the model, on the server it got %s", w.req.ID, class(w.sides[redis].err))
		}
	}
	h.compareLosses()
}

// compareAnswers waits until both sides have answered w.
func (h *history) compareAnswers(w *twin) {
	h.t.Helper()
	for side, c := range w.sides {
		select {
		case <-c.done:
			c.cancel()
		case <-time.After(patience):
			h.fail("%s: no answer from %s", w.req.ID, sideNames[side])
		}
	}
	a, b := w.sides[model], w.sides[redis]
	said := class(b.err)
	if h.copied[w.req.ID] { // a refusal is not the last word then: the copy may be queued after it
		said = strings.TrimPrefix(said, "unavailable ")
	}
	if class(a.err) != said {
		h.fail("%s: %s says %s (%v), %s says %s (%v)", w.req.ID, sideNames[model], class(a.err), a.err,
			sideNames[redis], class(b.err), b.err)
	}
	if a.err != nil {
		h.note("     %s: %s", w.req.ID, class(a.err))
		return
	}
	h.note("     %s: granted", w.req.ID)
	if a.grant.Nonce != b.grant.Nonce {
		h.fail("%s: the nonces are %s and %s", w.req.ID, a.grant.Nonce, b.grant.Nonce)
	}
	if err := h.pairsOf(w.req.Key).add(a.grant.Token, b.grant.Token); err != nil {
		h.fail("%s: %v", w.req.ID, err)
	}
	if b.grant.Tokens < 1 || b.grant.Sent.IsZero() || b.grant.Lease <= 0 {
		h.fail("%s: the grant %+v", w.req.ID, b.grant)
	}
}

// locks lists what is in use on one side.
func (h *history) locks(side int) map[driver.Key]driver.LockInfo {
	h.t.Helper()
	ctx, cancel := h.bounded()
	defer cancel()
	all := make(map[driver.Key]driver.LockInfo)
	for info, err := range h.engines[side][0].Locks(ctx, "") {
		if err != nil {
			h.fail("%s: Locks: %v", sideNames[side], err)
		}
		all[driver.Key{Kind: info.Kind, Name: info.Name}] = info
	}
	return all
}

// compareLocks waits until operators see the same on both sides.
func (h *history) compareLocks() {
	h.t.Helper()
	want := h.show(h.locks(model), true)
	var got string
	soon(h.t.Context(), func() bool {
		got = h.show(h.locks(redis), false)
		return got == want
	})
	if got != want {
		h.fail("the model has\n%s\nthe server has\n%s", want, got)
	}
}

// show writes what operators see. Tokens are written as the server's.
func (h *history) show(locks map[driver.Key]driver.LockInfo, translate bool) string {
	var lines []string
	for key, info := range locks {
		for _, l := range info.Holders {
			token := l.Token
			if translate {
				token = h.translate(key, token)
			}
			client := l.Client
			if h.renamed[l.Label] {
				client = "?"
			}
			lines = append(lines, fmt.Sprintf("%s %s of %d: %s %s %s holds %d shared %v, token %d",
				key.Kind, key.Name, info.Limit, l.Label, l.Owner, client, l.Weight, l.Shared, token))
		}
		for _, w := range info.Waiters {
			lines = append(lines, fmt.Sprintf("%s %s of %d: waiter %02d is %s %s %s for %d shared %v",
				key.Kind, key.Name, info.Limit, w.Position, w.Label, w.Owner, w.Client, w.Weight, w.Shared))
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func (h *history) translate(key driver.Key, token uint64) uint64 {
	for _, pair := range h.pairsOf(key).list {
		if pair[model] == token {
			return pair[redis]
		}
	}
	return token
}

// compareLosses waits until the same holders have been told that they lost their hold.
func (h *history) compareLosses() {
	h.t.Helper()
	for _, w := range h.ids {
		want := h.losses.of(model, w.req.ID)
		if want == 0 && h.losses.of(redis, w.req.ID) == 0 {
			continue
		}
		soon(h.t.Context(), func() bool { return h.losses.of(redis, w.req.ID) >= want })
		if got := h.losses.of(redis, w.req.ID); got != want {
			h.fail("%s was told of its loss %d times by the model, %d times by the server", w.req.ID, want, got)
		}
	}
}
