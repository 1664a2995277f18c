package handoff

import (
	"fmt"
	"slices"
)

// kind is the sort of a message.
type kind uint8

// Requests go to the engine, the others to a client. The numbers order the messages of a wire and mean nothing else.
const (
	noMessage kind = iota
	acquire        // also the heartbeat of a waiter and the claim of a pushed grant: one idempotent script
	renew
	shorten // the renewal of a retained grant
	release // also the undo of a cancelled acquire
	yours
	held   // somebody else has it, and the request is not queued
	queued // somebody else has it, and the request is queued
	gone   // the id is tombstoned
	renewed
	notYours // to a renewal: no such hold
	ended    // to a release: there is no such hold any more
	push     // a grant that is no answer
	shortened
	wanted // to a client that has the lock, and no answer: another wants it
	named  // to a client that has the lock, and no answer: who is next
	told   // from a client to the one that was named to it: the lock is free
)

var kindNames = [...]string{
	acquire: "acquire", renew: "renew", shorten: "renew, retained", release: "release", yours: "yours",
	held: "held by another", queued: "queued", gone: "gone", renewed: "renewed", notYours: "not yours", ended: "ended",
	push: "granted (push)", shortened: "renewed, retained", wanted: "wanted by another",
	named: "your successor", told: "it is yours",
}

// msg is one message, packed so that a state stays small: request id, age and lag of four bits each, and the kind.
// Where clients hand the lock to each other it has two more parts of four bits: a second request id and a token.
//
// The age of a request counts ticks since it was sent, and an answer inherits it: it is what the client knows about the
// instant from which the answer may be trusted. The age of a push counts from the engine's instant of granting. The lag
// of an answer is the age that the request had when the engine handled it, so it stands for s0 - t_sent.
type msg uint32

const (
	kindShift  = 12
	peerShift  = 20
	tokenShift = 24
)

func newMsg(k kind, id, age, lag uint8) msg {
	return msg(k)<<kindShift | msg(id)<<8 | msg(age)<<4 | msg(lag)
}

// with returns m with another request id and a token.
func (m msg) with(peer, token uint8) msg {
	return m&(1<<peerShift-1) | msg(peer)<<peerShift | msg(token)<<tokenShift
}

func (m msg) kind() kind      { return kind(m>>kindShift) & 255 }
func (m msg) id() uint8       { return uint8(m>>8) & 15 }
func (m msg) age() uint8      { return uint8(m>>4) & 15 }
func (m msg) lag() uint8      { return uint8(m) & 15 }
func (m msg) peer() uint8     { return uint8(m>>peerShift) & 15 }
func (m msg) token() uint8    { return uint8(m>>tokenShift) & 15 }
func (m msg) isRequest() bool { return m.kind() <= release }

// older returns m one tick later. Ages above most make no difference to anybody, so they are not told apart; nor are
// those of messages that say something whose date does not matter.
func (m msg) older(most uint8) msg {
	switch m.kind() {
	case noMessage, held, gone, notYours, ended, wanted:
		return m
	}
	if m.age() >= most {
		return m
	}
	return m + 1<<4
}

// tell names a message in a story; name turns a request id into words.
func (m msg) tell(name func(uint8) string) string {
	if m.isRequest() {
		return fmt.Sprintf("%s's %q", name(m.id()), kindNames[m.kind()])
	}
	if m.kind() == told {
		return fmt.Sprintf("%s's word %q to %s", name(m.peer()), kindNames[told], name(m.id()))
	}
	return fmt.Sprintf("the answer %q to %s", kindNames[m.kind()], name(m.id()))
}

// wire is what is under way: a multiset, because messages overtake each other, kept sorted so that equal multisets are
// equal values. Its capacity bounds the models: a step that would send more is not taken until a message has arrived or
// was lost.
type wire [4]msg

// put adds m, and reports whether there was room among the first room places.
func (w *wire) put(m msg, room int) bool {
	n := w.len()
	if n >= room || n >= len(w) {
		return false
	}
	w[n] = m
	w.sort()
	return true
}

// take removes the message at i.
func (w *wire) take(i int) {
	w[i] = 0
	w.sort()
}

// drop removes the messages for which futile is true.
func (w *wire) drop(futile func(msg) bool) {
	for i := 0; i < len(w) && w[i] != 0; {
		if futile(w[i]) {
			w.take(i)
		} else {
			i++
		}
	}
}

// rename replaces the request ids.
func (w *wire) rename(to func(id uint8) uint8) {
	for i, m := range w {
		if m == 0 {
			continue
		}
		peer := m.peer()
		if peer != 0 {
			peer = to(peer)
		}
		w[i] = newMsg(m.kind(), to(m.id()), m.age(), m.lag()).with(peer, m.token())
	}
	w.sort()
}

// sort moves the free places, which are zero, to the end.
func (w *wire) sort() {
	for i := 1; i < len(w); i++ {
		for j := i; j > 0 && w[j] > w[j-1]; j-- {
			w[j], w[j-1] = w[j-1], w[j]
		}
	}
}

func (w *wire) len() int {
	for i, m := range w {
		if m == 0 {
			return i
		}
	}
	return len(w)
}

// tick makes every message older, and drops requests that have reached horizon: by then the client has given up the
// connection that carries them. A horizon of 0 means that they live for ever.
func (w *wire) tick(most, horizon uint8) {
	for i, m := range w {
		if horizon == 0 && m.kind() == release {
			continue // it has no age to look at
		}
		if w[i] = m.older(most); horizon > 0 && m.isRequest() && w[i].age() >= horizon {
			w[i] = 0
		}
	}
	w.sort()
}

// each calls f for every different message, with its place.
func (w *wire) each(f func(i int, m msg)) {
	for i, m := range w {
		if m != 0 && !slices.Contains(w[:i], m) {
			f(i, m)
		}
	}
}
