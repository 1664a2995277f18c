package check

import (
	"slices"

	"github.com/interlock-go/interlock/torture/history"
)

// checkShares is K11: what is shared, and what is held several times, is as often held as it may be. A holder counts for as
// long as it was sure, as in K4.
func (r *record) checkShares() *Verdict {
	if r.about.Long || r.about.Increments > 0 { // then all that is done is to count under one lock
		return nil
	}
	v := &Verdict{
		Check: "K11", Claim: "no writer beside readers, no more permits than there are, re-entry has the same hold, a latch counts each once", Excused: r.excuse(),
	}
	byStart := slices.Clone(r.holds)
	slices.SortFunc(byStart, func(a, b *hold) int { return int(a.from - b.from) })
	active := map[string][]*hold{}
	for _, h := range byStart {
		h.checkAgain(v)
		if h.share == "" {
			continue
		}
		v.Of++
		beside := slices.DeleteFunc(active[h.name], func(g *hold) bool { return g.sure <= h.from })
		used := h.weight
		for _, g := range beside {
			used += g.weight
			if h.share == history.Writes || g.share == history.Writes {
				v.fault("%v %s beside %v, which %s", h, h.share, g, g.share)
			}
		}
		if used > h.limit {
			v.fault("%v: %d permits of %d", h, used, h.limit)
		}
		active[h.name] = append(beside, h)
	}
	r.checkLatches(v)
	if v.Of == 0 {
		v.Vacuous = "nothing was shared, and nobody re-entered"
	}
	return v
}

// checkAgain looks at the re-entries of a hold.
func (h *hold) checkAgain(v *Verdict) {
	for _, e := range h.again {
		v.Of++
		switch {
		case e.Phase == history.Fail:
			v.fault("%v: %s", h, e.Err)
		case e.Phase == history.OK && (e.Token != h.token || e.Nonce != h.nonce):
			v.fault("%v: re-entry has token %d, nonce %q and not %q", h, e.Token, e.Nonce, h.nonce)
		}
	}
}
