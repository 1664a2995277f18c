package sim

import (
	"sync"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// truth keeps the books of what the engine has said: which hold lasts until when. It is what the engine is checked
// with, and what the processes' beliefs are compared with.
type truth struct {
	w *world

	mu    sync.Mutex           // guards what is below
	holds map[string]*hold     // by label, also those that are over
	names map[string][]*hold   // by lock: what may be live, and what was broken
	dead  map[string]time.Time // until when a request must not be granted any more
	anew  map[uint64]bool      // tokens of copies that came when their request was over and forgotten
}

// hold is a grant as the engine has given it.
type hold struct {
	l      *link
	id     string // the request's real id
	name   string
	grant  driver.Grant
	until  time.Time // end of the lease, or when it was given back
	given  bool      // given back, not run out
	broken bool
}

// live reports whether the hold lasts beyond now. An end is exclusive.
func (h *hold) live(now time.Time) bool { return h.until.After(now) }

// has reports whether token is one of the hold's block.
func (h *hold) has(token uint64) bool {
	return token >= h.grant.Token && token-h.grant.Token < uint64(h.grant.Tokens)
}

func newTruth(w *world) *truth {
	return &truth{
		w: w, holds: make(map[string]*hold), names: make(map[string][]*hold), dead: make(map[string]time.Time),
		anew: make(map[uint64]bool),
	}
}

// granted enters a grant, or the answer to a copy of its request.
func (t *truth) granted(l *link, id string, r *driver.Request, g driver.Grant) {
	now := time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	if until, over := t.dead[id]; over && now.Before(until) {
		t.w.violate(residue, "%s was over and is granted %s", id, r.Name)
	}
	until := g.Sent.Add(r.Lease)
	if h := t.holds[id]; h != nil && h.grant.Token == g.Token {
		if until.After(h.until) {
			h.until = until
		}
		return
	}
	// A copy that arrives after its hold is over and forgotten is granted anew, with another token: to nobody's use,
	// because the request was sent too long ago, unless its owner is named and re-enters.
	if t.holds[id] != nil {
		t.anew[g.Token] = true
	}
	for _, other := range t.names[r.Name] {
		if other.live(now) && other.grant.Nonce != g.Nonce {
			t.w.violate(truthful, "%s is granted %s, which %s has", id, r.Name, other.l.label(other.id))
		}
	}
	h := &hold{l: l, id: r.ID, name: r.Name, grant: g, until: until}
	t.holds[id] = h
	t.names[r.Name] = append(t.prune(r.Name, now), h)
	t.w.counts.hit("grant")
}

// prune forgets what ended long ago. The caller holds the mutex.
func (t *truth) prune(name string, now time.Time) []*hold {
	kept := t.names[name][:0]
	for _, h := range t.names[name] {
		if h.until.After(now.Add(-time.Minute)) {
			kept = append(kept, h)
		}
	}
	return kept
}

// renewed enters a renewal that the engine has confirmed.
func (t *truth) renewed(id string, lease time.Duration) {
	now := time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	h := t.holds[id]
	if h == nil || !h.live(now) {
		t.w.violate(truthful, "%s is over and was renewed", id)
		return
	}
	if until := now.Add(lease); until.After(h.until) {
		h.until = until
	}
}

// end enters that a hold is about to be given back. The function that it returns takes that back.
func (t *truth) end(id string) (restore func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	h := t.holds[id]
	if h == nil {
		return func() {}
	}
	return t.cutShort(h, false)
}

// cutShort ends a hold now. The caller holds the mutex.
func (t *truth) cutShort(h *hold, broken bool) (restore func()) {
	now, before := time.Now(), *h
	if h.live(now) {
		h.until, h.given = now, true
	}
	h.broken = h.broken || broken
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		h.until, h.given, h.broken = before.until, before.given, before.broken
	}
}

// buried enters that a request is over for good.
func (t *truth) buried(id string, r *driver.Release) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if until := time.Now().Add(r.Horizon); until.After(t.dead[id]) {
		t.dead[id] = until
	}
}

// isLive reports whether a request has the lock.
func (t *truth) isLive(id string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	h := t.holds[id]
	return h != nil && h.live(time.Now())
}

// isAnew reports whether the token is that of a copy that had outlived its request. Its nonce is the request's, so it
// was given before; a fence compares nonces of equal tokens only, and the tokens differ.
func (t *truth) isAnew(token uint64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.anew[token]
}

// isDead reports whether a request is over for good.
func (t *truth) isDead(id string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, over := t.dead[id]
	return over
}

// breakBlock enters that all holds of the owner whose block contains token are about to end.
func (t *truth) breakBlock(name string, token uint64) (restore func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	var all []func()
	for _, h := range t.names[name] {
		if h.has(token) && h.live(now) {
			all = append(all, t.cutShort(h, true))
		}
	}
	return func() {
		for _, restore := range all {
			restore()
		}
	}
}

// isBroken reports whether an operator has ended the hold with that token.
func (t *truth) isBroken(name string, token uint64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, h := range t.names[name] {
		if h.broken && h.has(token) {
			return true
		}
	}
	return false
}

// lasts returns until when the engine gives the lock to nobody else than the holder with that token. It reports false
// if it does not know, which is so when an operator had a hand in it.
func (t *truth) lasts(name string, token uint64) (time.Time, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var until time.Time
	for _, h := range t.names[name] {
		if !h.has(token) {
			continue
		}
		if h.broken {
			return time.Time{}, false
		}
		if h.until.After(until) {
			until = h.until
		}
	}
	return until, !until.IsZero()
}

// holder returns a hold of the lock that is live, or nil.
func (t *truth) holder(name string) *hold {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	for _, h := range t.names[name] {
		if h.live(now) {
			return h
		}
	}
	return nil
}

// ranOut returns the holds that ended with their lease, and how many there were in all.
func (t *truth) ranOut() (labels []string, all int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for label, h := range t.holds {
		if !h.given {
			labels = append(labels, label)
		}
	}
	return labels, len(t.holds)
}

// remains reports whether the engine lists a hold that is over, and that no other hold of the same owner keeps.
func (t *truth) remains(id string, list []driver.LockInfo) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	h := t.holds[id]
	if h == nil {
		return false
	}
	now := time.Now()
	for _, other := range t.names[h.name] {
		if other != h && other.grant.Nonce == h.grant.Nonce && other.live(now) {
			return false
		}
	}
	for _, info := range list {
		for _, holder := range info.Holders {
			if info.Name == h.name && holder.Token == h.grant.Token {
				return true
			}
		}
	}
	return false
}
