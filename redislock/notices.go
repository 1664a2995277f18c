package redislock

import (
	"strings"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// listener is the driver as its connections see it: it takes what they are sent without having asked.
type listener Driver

// Pushed takes a message: G ID NOW TOKEN TOKENS NONCE LEASE (a grant that must be claimed), X ID NOW stuck (the wait
// has become one for the owner itself), X ID NOW lost (the hold beside which it asks is over), A ID NOW (ask again:
// it is its turn), B ID NOW (broken), M ID NOW (adopted by another client), W ID NOW (another wants the lock), or C
// KIND:NAME (something that is watched has changed). What is for a request that is not known any more is dropped: its
// owner has given up, and what it left is being undone.
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
		refused := reply{verdict: stuck, now: micros(now), link: l}
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

// again has one who waits ask: it is next, and the script that would have let it in had done enough for one run.
func (d *listener) again(id string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if e := d.entries[id]; e != nil && !e.held {
		e.waiting().ask()
	}
}

// broken tells a holder that an operator has taken its lock. One whose grant is still under way is told when it is
// there: what asks again with the ID of a hold that is over never gets one, and must not hear of that hold's end. In a
// Cluster each node passes the message on, so the last of them may come late.
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
	if held {
		e.tellBroken()
	}
}

// moved tells who had a hold that another client has adopted it. One whose grant is not known here has given no handle
// away, and learns by its renewal.
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

func (e *entry) tellBroken() {
	if e.lost != nil {
		e.lost(driver.LostBroken, nil)
	}
}

// wanted tells a holder that another wants its lock. One whose grant is still under way is told when it is there.
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

func (e *entry) tellWanted() {
	if e.wanted != nil {
		e.wanted()
	}
}

// Dropped has everybody who waits ask, because a push may have been missed.
func (d *listener) Dropped(Link) {
	d.presence.hurry() // it may have been long in coming through
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, watches := range d.watches {
		for w := range watches {
			w.stir(true)
		}
	}
	d.ask()
}

// askAll has everybody who waits ask.
func (d *listener) askAll() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ask()
}

// ask is askAll under Driver.mu.
func (d *listener) ask() {
	for _, e := range d.entries {
		if !e.held {
			e.waiting().ask()
		}
	}
}

// ask has the waiting goroutine ask the server.
func (w *wait) ask() {
	w.again = true
	w.rouse()
}

// rouse wakes the waiting goroutine.
func (w *wait) rouse() {
	select {
	case w.wake <- struct{}{}:
	default: // it has been roused and will see this
	}
}
