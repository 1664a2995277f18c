package sim

import (
	"errors"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/fence"
)

// beliefs knows who has been told to be inside of what.
type beliefs struct {
	w      *world
	mu     sync.Mutex // guards inside; the clients' own mutexes are taken under it
	inside map[string][]*insider
}

type insider struct {
	lease   *interlock.Lease
	process int
}

// entered checks, at the instant in which a worker is told to be inside, that nobody else believes so of himself.
// Leases that are lost stay so, which makes this instant the only one to look at. An answer
// that comes after its lease has ended must be given to nobody. It reports whether the worker is inside at all.
func (b *beliefs) entered(l *interlock.Lease, process int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if l.Err() != nil {
		b.w.violate(belief, "%s: token %d was given to a worker when its lease had ended", l.Name(), l.Token())
		return false
	}
	trusted := slices.DeleteFunc(b.inside[l.Name()], func(i *insider) bool { return i.lease.Err() != nil })
	for _, i := range trusted {
		if i.lease.Owner() == l.Owner() {
			continue
		}
		if b.w.truth.isBroken(l.Name(), i.lease.Token()) || b.w.truth.isBroken(l.Name(), l.Token()) {
			b.w.counts.hit("overlap after a break") // the word of it is still on its way
			continue
		}
		b.w.violate(exclusion, "%s: tokens %d and %d are trusted at once", l.Name(), i.lease.Token(), l.Token())
	}
	b.inside[l.Name()] = append(trusted, &insider{l, process})
	return true
}

// holders returns the processes that have somebody inside.
func (b *beliefs) holders() []int {
	b.mu.Lock()
	defer b.mu.Unlock()
	var in []int
	for _, name := range names {
		for _, i := range b.inside[name] {
			if i.lease.Err() == nil {
				in = append(in, i.process)
			}
		}
	}
	return in
}

// left checks a loss at the instant in which the holder is told: the engine must not have been free to let others in
// before. Losses that the engine told are news from there, they come when they come.
func (b *beliefs) left(l *interlock.Lease) {
	var lost *interlock.LostError
	if !errors.As(l.Err(), &lost) {
		return
	}
	if lost.Reason != interlock.LostUnconfirmed && lost.Reason != interlock.LostExpired {
		return
	}
	until, known := b.w.truth.lasts(l.Name(), l.Token())
	if told := l.Deadline(); known && told.After(until) {
		b.w.violate(belief, "%s: token %d was trusted for %v after the engine's lease", l.Name(), l.Token(),
			told.Sub(until))
	}
}

// order knows the tokens that have been seen.
type order struct {
	w    *world
	mu   sync.Mutex // guards what is below
	most map[string]uint64
	seen map[string]string // nonce, by lock and token
	of   map[string]uint64 // token, by nonce
}

// mark returns the largest token that anybody has been given so far.
func (o *order) mark(name string) uint64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.most[name]
}

// given checks the token of an acquisition that was asked for when the largest was mark.
func (o *order) given(name string, s fence.Stamp, mark uint64) {
	broken, anew := o.w.truth.isBroken(name, s.Token), o.w.truth.isAnew(s.Token)
	o.mu.Lock()
	defer o.mu.Unlock()
	key := name + strconv.FormatUint(s.Token, 10)
	nonce, again := o.seen[key]
	switch {
	case again && nonce != s.Nonce:
		o.w.violate(tokens, "%s: token %d was given twice", name, s.Token)
	case !again && s.Token <= mark && !broken:
		o.w.violate(tokens, "%s: token %d was given after %d", name, s.Token, mark)
	}
	if token, used := o.of[s.Nonce]; used && token != s.Token && (s.Token < token || !anew) {
		o.w.violate(tokens, "%s: tokens %d and %d have the same nonce", name, token, s.Token)
	}
	o.seen[key], o.of[s.Nonce] = s.Nonce, s.Token
	o.most[name] = max(o.most[name], s.Token)
}

// within checks that a call has returned in time after its context's end.
func (w *world) within(call string, end time.Time) {
	if late := time.Since(end); late > 50*time.Millisecond {
		w.violate(prompt, "%s returned %v after its context had ended", call, late)
	}
}
