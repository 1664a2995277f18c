package check

import (
	"slices"

	"github.com/interlock-go/interlock/torture/history"
	"github.com/interlock-go/interlock/torture/run"
	"github.com/interlock-go/interlock/torture/target"
)

// checkExclusion is K4: no lock is granted while somebody else has it, by all that the holder can know. Where two
// holders are possible only those are against the claim of which both were sure, and the others are counted as double
// grants beside it. A holder is sure from the return of Lock until it last looked whether the hold lasts and found that
// it does.
func (r *record) checkExclusion(f *Figures) *Verdict {
	v := &Verdict{Check: "K4", Claim: "no lock is granted while somebody else has it", Excused: r.excuse()}
	if v.Excused != "" {
		v.Claim = "no two holders are sure of a lock at once"
	}
	surest, latest := map[string]*hold{}, map[string]*hold{}
	for _, h := range r.alone() { // in the order of their grants
		if h.never() {
			continue
		}
		// who was killed before it looked holds for no time that anybody knows, and so proves nothing
		if h.until() > h.from {
			v.Of++
		}
		s, g := surest[h.name], latest[h.name]
		sure, double := s != nil && h.from < s.sure, g != nil && h.from < g.until()
		if double {
			f.Doubles++
		}
		switch strict := v.Excused == ""; {
		case strict && double && r.isNews(g, h.from, g.until()):
			v.Of--
			v.Spared++
		case sure:
			v.fault("%v from %v after the begin; %v was sure until %v later", h, h.from.Sub(r.about.Begin), s,
				s.sure.Sub(h.from))
		case strict && double:
			v.fault("%v from %v after the begin; %v had it until %v later", h, h.from.Sub(r.about.Begin), g,
				g.until().Sub(h.from))
		}
		if s == nil || h.sure > s.sure {
			surest[h.name] = h
		}
		if g == nil || h.until() > g.until() {
			latest[h.name] = h
		}
	}
	return v
}

// isNews reports whether it was still news from one instant to another that g had ended. That can only be where the
// session behind the holds is a connection: the server frees the lock when it notices the end of that, and the holder
// hears of it at about the same time, be it a moment later. For longer than that, and the time for which it stood
// still, it is no news. What the engine itself says was given back had not ended, unless its connection was disturbed:
// then that may have been said when another had found that its session was over.
func (r *record) isNews(g *hold, from, to history.Instant) bool {
	if !r.target.Connected || g.gaveBack && !r.disturbed(g.proc, from, g.back) {
		return false
	}
	moment := r.lateness() + r.lagged(from, to)
	for _, b := range r.blows {
		if b.Proc == g.proc && b.Fault == target.Stop && b.From < to && from < b.To.Add(settles) {
			moment += min(b.To.Add(settles), to).Sub(max(b.From, from))
		}
	}
	return to.Sub(from) <= moment
}

// disturbed reports whether something was done to the connections of a process between two instants.
func (r *record) disturbed(proc int, from, to history.Instant) bool {
	return slices.ContainsFunc(r.blows, func(b run.Blow) bool {
		return b.Proc == proc && b.Fault.TakesProxies() && b.From < to && from < b.To
	})
}

// alone returns the holds of mutexes, in the order of their grants.
func (r *record) alone() []*hold {
	return slices.DeleteFunc(slices.Clone(r.holds), func(h *hold) bool { return h.share != "" })
}

// excuse says why two holders are possible, if they are under a fault of this run.
func (r *record) excuse() string {
	for _, f := range r.about.Faults {
		if why, broken := r.target.Broken[f]; broken {
			return why
		}
	}
	return ""
}

// until is how long h lasted by all that its holder could know. Of one that was killed that is as long as it was
// sure: some engines free a lock when its process ends.
func (h *hold) until() history.Instant { return max(h.sure, h.over) }

// ends takes in that h was given back, or that its holder was told of its loss, whichever comes first. It may have been
// over by then: one that stood still learns late that its lease has run out, and says that it has ended now. Then it
// counts to the last deadline that is recorded.
func (h *hold) ends(e *history.Event) {
	if h.over != 0 {
		return
	}
	h.over = known(e)
	if h.due != 0 && h.over < e.At {
		h.over = min(h.over, h.due)
	}
}

// checkShares is K11: what is shared, and what is held several times, is as often held as it may be. A holder counts
// for as long as it was sure, as in K4.
func (r *record) checkShares(f *Figures) *Verdict {
	// Then all that is done is to count under one lock.
	if r.about.Long || r.about.Increments > 0 || r.about.Workload == run.Held {
		return nil
	}
	v := &Verdict{
		Check: "K11", Excused: r.excuse(),
		Claim: "no writer beside readers, no more permits than there are, nobody in between when a hold changes its " +
			"mode, a stamp is of a reader exactly if others may read, re-entry has the same hold, a latch " +
			"counts each once, a signal wakes one",
	}
	var claims []claim
	for _, h := range r.holds {
		h.checkAgain(v)
		h.checkStamp(v, h.share, h.stamp)
		f.Turns += h.checkTurns(v)
		if h.share == "" {
			continue
		}
		v.Of++
		if !h.never() {
			claims = append(claims, h.claims()...)
		}
	}
	r.checkClaims(v, claims)
	r.checkLatches(v)
	r.checkConditions(v, f)
	if v.Of == 0 {
		v.Vacuous = "nothing was shared, and nobody re-entered"
	}
	return v
}

// claim is what a holder was sure to have, from one instant to another.
type claim struct {
	mode
	of *hold
}

// claims are those of a hold that may be beside others. One that has changed its mode has had the weakest all the time,
// because nobody may get in between, and the others beside that.
func (h *hold) claims() []claim {
	weakest := slices.MinFunc(h.modes, func(a, b mode) int { return strength[a.share] - strength[b.share] })
	all := []claim{{mode{weakest.share, weakest.token, h.from, h.sure}, h}}
	for _, m := range h.modes {
		if m.share != weakest.share {
			all = append(all, claim{m, h})
		}
	}
	return all
}

var strength = map[history.Share]int{history.Reads: 1, history.Upgrades: 2, history.Writes: 3}

// excludes reports whether two holds of a read-write lock may not be beside each other.
func excludes(a, b history.Share) bool {
	return a == history.Writes || b == history.Writes || a == history.Upgrades && b == history.Upgrades
}

func (r *record) checkClaims(v *Verdict, claims []claim) {
	slices.SortStableFunc(claims, func(a, b claim) int { return int(a.from - b.from) })
	active := map[string][]claim{}
	for _, c := range claims {
		beside := slices.DeleteFunc(active[c.of.name], func(o claim) bool { return o.sure <= c.from })
		used := map[*hold]int{c.of: c.of.weight}
		for _, o := range beside {
			used[o.of] = o.of.weight
			if c.share != history.Permits && o.of != c.of && excludes(c.share, o.share) &&
				!r.isNews(o.of, c.from, o.sure) {
				v.fault("%v %s beside %v, which %s", c.of, c.share, o.of, o.share)
			}
		}
		sum := 0
		for _, weight := range used {
			sum += weight
		}
		if sum > c.of.limit {
			v.fault("%v: %d permits of %d", c.of, sum, c.of.limit)
		}
		active[c.of.name] = append(beside, c)
	}
}

// checkStamp looks whether a stamp that a hold had in some mode is that of a writer exactly if
// nobody else may hold the lock.
func (h *hold) checkStamp(v *Verdict, share, stamp history.Share) {
	reads := share == history.Reads || share == history.Upgrades
	if stamp != "" && reads != (stamp == history.Reads) {
		v.Of++
		v.fault("%v: %q, with a stamp that %s", h, share, stamp)
	}
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

// checkTurns looks at the changes of a hold's mode: an upgrade has a new token, a downgrade and what was refused keep
// it, and a plain reader never comes to write. It returns how many changes there were.
func (h *hold) checkTurns(v *Verdict) (done int) {
	token, share := h.token, h.share
	for _, e := range h.turns {
		v.Of++
		switch {
		case e.Phase == history.Fail && e.Token != token:
			v.fault("%v: it was refused that it %s (%s), and the token is %d", h, e.Share, e.Err, e.Token)
		case e.Phase != history.OK:
		case e.Share == history.Writes && share == history.Reads:
			v.fault("%v: a plain reader came to write", h)
		case e.Share == history.Writes && e.Token <= token:
			v.fault("%v: it was upgraded and has token %d", h, e.Token)
		case e.Share != history.Writes && e.Token != token:
			v.fault("%v: it was downgraded and has token %d", h, e.Token)
		}
		if e.Phase == history.OK {
			h.checkStamp(v, e.Share, e.Stamp)
			token, share = e.Token, e.Share
			done++
		}
	}
	return done
}
