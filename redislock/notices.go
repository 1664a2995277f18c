// Messages that the server sends without being asked. A Conn calls these methods from the goroutine that reads the
// connection, so nothing here blocks; the waiting goroutines are in entry.go (news) and watch.go (await).

package redislock

import (
	"context"
	"strings"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// listener is the driver as its connections see it. It is a type of its own so that they are not methods of
// Driver.
type listener Driver

// Pushed handles one message. Messages are hints: each may be lost, and a heartbeat or a renewal then brings the same
// news. A message about a request that is not known any more is dropped: its caller has given up and is undoing what it
// left.
//
//	G ID NOW TOKEN TOKENS NONCE LEASE   a grant that must be claimed
//	X ID NOW stuck                      the wait has become one for the owner itself
//	X ID NOW lost                       the hold beside which it asks is over
//	A ID NOW                            ask again: it is its turn
//	B ID NOW                            an operator has broken the hold
//	M ID NOW                            another client has adopted the hold
//	W ID NOW                            another client wants the lock
//	C KIND:NAME                         a lock or latch that is watched has changed
func (d *listener) Pushed(l Link, _, message string) {
	kind, rest, _ := strings.Cut(message, " ")
	if kind == "C" {
		d.changed(rest)
		return
	}
	id, rest, _ := strings.Cut(rest, " ")
	switch kind {
	case "G":
		d.wake(id, parseReply(Reply{Text: "G " + rest, Link: l}))
	case "X":
		now, why, _ := strings.Cut(rest, " ")
		refused := reply{verdict: stuck, now: wholeNumber(now), link: l}
		if why == "lost" {
			refused.verdict = orphaned
		}
		d.wake(id, refused)
	case "A":
		d.again(id)
	case "B":
		d.broken(id)
	case "M":
		d.moved(id)
	case "W":
		d.wanted(id)
	}
}

// wake gives a grant or a refusal to the waiting attempt. The receiving instant is taken before the lock, because
// trusts compares it with the instant of the grant. A later push replaces one that was not read yet: the later one is
// the server's last word.
func (d *listener) wake(id string, r reply) {
	p := &push{grant: r, received: time.Now()}
	d.mu.Lock()
	defer d.mu.Unlock()
	if e := d.entries[id]; e != nil && !e.held {
		w := e.waiting()
		w.push = p
		w.rouse()
	}
}

// again makes one waiter ask. It is next in line, and the script that would have let it in had already done enough for
// one run.
func (d *listener) again(id string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if e := d.entries[id]; e != nil && !e.held {
		e.waiting().askAgain()
	}
}

// broken tells a holder that an operator has taken its lock. If the grant is still under way, the holder is told when
// it arrives. A request that is asked again with the ID of a broken hold gets no grant, so it must not hear of that
// hold's end either. In a Cluster each node passes the message on, so the last copy may come late.
func (d *listener) broken(id string) {
	d.mu.Lock()
	e := d.entries[id]
	held := e != nil && e.held
	switch {
	case held:
		(*Driver)(d).drop(id, e)
	case e != nil:
		e.broken = true
	}
	d.mu.Unlock()
	// Without the mutex: it is the caller's code.
	if held {
		e.tellBroken()
	}
}

// moved tells the giver of a hold that another client has adopted it. A hold whose grant is not known here has given no
// handle away, so the message cannot be meant for it; if it is, its renewal finds out.
func (d *listener) moved(id string) {
	d.mu.Lock()
	e := d.entries[id]
	held := e != nil && e.held
	if held {
		(*Driver)(d).drop(id, e)
	}
	d.mu.Unlock()
	if held && e.lost != nil {
		e.lost(driver.LostAdopted, nil)
	}
}

// tellBroken calls the caller's code, so the caller must not hold Driver.mu.
func (e *entry) tellBroken() {
	if e.lost != nil {
		e.lost(driver.LostBroken, nil)
	}
}

// wanted tells a holder that another client wants its lock. If the grant is still under way, the holder is told when it
// arrives.
func (d *listener) wanted(id string) {
	d.mu.Lock()
	e := d.entries[id]
	held := e != nil && e.held
	if e != nil && !held {
		e.wants = true
	}
	d.mu.Unlock()
	if held {
		e.tellWanted()
	}
}

// tellWanted calls the caller's code, so the caller must not hold Driver.mu.
func (e *entry) tellWanted() {
	if e.wanted != nil {
		e.wanted()
	}
}

// Resumed is Dropped once more, now that there is somebody to ask, and has what is held renewed: the server may have
// been restarted and have forgotten it. Not before: renewals would go to a server that is away, and each be reported.
func (d *listener) Resumed(l Link) {
	d.Dropped(l)
	d.mu.Lock()
	defer d.mu.Unlock()
	(*Driver)(d).reconnected()
}

// Dropped makes every waiter and watcher ask, because a push may have been missed while the connection was broken. The
// process says soon that it is alive: the server may not have heard it for a while.
func (d *listener) Dropped(Link) {
	d.presence.hurry() // it may have been long in coming through
	d.latest.repeat((*Driver)(d))
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, watches := range d.watches {
		for w := range watches {
			w.stir(true)
		}
	}
	d.allAskAgainLocked()
}

// allAskAgain makes every waiter ask.
func (d *listener) allAskAgain() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.allAskAgainLocked()
}

// allAskAgainLocked is allAskAgain for a caller that holds Driver.mu.
func (d *listener) allAskAgainLocked() {
	for _, e := range d.entries {
		if !e.held {
			e.waiting().askAgain()
		}
	}
}

// askAgain makes the waiting goroutine ask the server. The caller holds Driver.mu.
func (w *wait) askAgain() {
	w.again = true
	w.rouse()
}

// rouse wakes the waiting goroutine. It does not block: the channel has room for one signal, and one is enough.
func (w *wait) rouse() {
	select {
	case w.wake <- struct{}{}:
	default: // it has been roused and will see this
	}
}

// Subscriptions to the slots of a Cluster. acquire.go and watch.go listen before the server may push to a slot.
// Elsewhere one channel, of driver.go, is enough.

// mostIdle is how many slots without a wait are still listened to, because the next wait in a slot often comes soon. A
// subscription costs two round trips.
const mostIdle = 256

// slotsInUse counts the waits for each slot of a Cluster. Driver.mu guards it.
type slotsInUse struct {
	waits map[uint16]int // may be 0: slots that are still listened to
	idle  []uint16       // slots whose count came to 0, the oldest first; one may be in use again, or listed twice
}

// listens reports whether the driver has asked to listen to the pushes of slot and not given that up. It can be wrong
// after a slot has moved; therefore listen is called before every wait.
func (d *Driver) listens(slot uint16) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, listens := d.slots.waits[slot]
	return listens
}

// slotListener is somebody who hears the pushes of one slot: an attempt, or a watch. Only one goroutine uses it.
type slotListener struct {
	d       *Driver
	slot    uint16
	listens bool // it counts in slotsInUse
}

// listen subscribes to the pushes of the slot if that is necessary and not yet done. It blocks until the server has
// confirmed the subscription: a grant that was pushed before would reach nobody.
//
// The count goes up before the subscription, so that stopListening of another listener cannot give the slot up in
// between.
func (l *slotListener) listen(ctx context.Context) error {
	d := l.d
	if !d.conn.Sharded() {
		return nil
	}
	if !l.listens {
		l.listens = true
		d.mu.Lock()
		if d.slots.waits == nil {
			d.slots.waits = make(map[uint16]int)
		}
		d.slots.waits[l.slot]++
		d.mu.Unlock()
	}
	// Listen returns at once if the subscription is there already.
	return d.conn.Listen(ctx, l.slot, d.names.shard(d.process, l.slot))
}

// stopListening ends what listen began. The slot's subscription ends only when mostIdle other slots have become idle
// since.
func (l *slotListener) stopListening() {
	if !l.listens {
		return
	}
	l.listens = false
	d := l.d
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.slots.waits[l.slot]--; d.slots.waits[l.slot] > 0 {
		return
	}
	d.slots.idle = append(d.slots.idle, l.slot)
	if len(d.slots.idle) <= mostIdle {
		return
	}
	oldest := d.slots.idle[0]
	d.slots.idle = d.slots.idle[1:]
	// The slot may have come into use again since it was listed.
	if waits, listens := d.slots.waits[oldest]; listens && waits == 0 {
		delete(d.slots.waits, oldest)
		d.conn.Unlisten(oldest, d.names.shard(d.process, oldest))
	}
}
