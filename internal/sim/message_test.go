package sim

import (
	"math/rand/v2"
	"strconv"
	"sync"
	"time"
)

// message is one exchange between a process and the engine: a request, and what the engine says to it, which may be
// several things at several times. Each leg of it is delayed, lost or repeated by itself.
type message struct {
	l    *link
	what string // for the log, and the seed of rng
	sent time.Time

	mu  sync.Mutex // guards rng
	rng *rand.Rand
}

// message makes the next message of that kind about the request of that id.
func (l *link) message(op, id string) *message {
	what := op + " " + l.label(id)
	l.mu.Lock()
	l.tries[what]++
	what += "#" + strconv.Itoa(l.tries[what])
	l.mu.Unlock()
	return &message{l: l, what: what, sent: time.Now(), rng: l.w.random(l.name + " " + what)}
}

// draw uses the message's generator.
func (m *message) draw(f func(rng *rand.Rand)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f(m.rng)
}

// toEngine sends the request; serve is what the engine does with it. It runs in a goroutine of its own, never if the
// request is lost, and twice if it is repeated.
func (m *message) toEngine(serve func()) {
	w, l := m.l.w, m.l
	var lost, repeated bool
	var delay, late time.Duration
	m.draw(func(rng *rand.Rand) {
		lost = w.weather.loses(rng)
		repeated = w.weather.repeats(rng)
		delay = w.weather.delay(rng)
		late = between(rng, 20*time.Millisecond, 700*time.Millisecond)
	})
	dead, frozen, cut := l.state(&l.cutOut)
	switch {
	case dead:
		return
	case cut:
		w.counts.hit("partitioned request")
		return
	case frozen > 0: // the process stands still, and its message leaves when it goes on
		w.counts.hit("frozen request")
		delay += frozen
	}
	if lost {
		w.counts.hit("lost request")
	} else {
		time.AfterFunc(delay, func() { m.atEngine(serve) })
	}
	if repeated {
		w.counts.hit("repeated request")
		time.AfterFunc(delay+late, func() { m.atEngine(serve) })
	}
}

// atEngine has the request served when the engine is not hanging.
func (m *message) atEngine(serve func()) {
	w := m.l.w
	if left := w.weather.left(&w.weather.stall); left > 0 {
		w.counts.hit("stalled request")
		m.draw(func(rng *rand.Rand) { left += between(rng, 1, 2*time.Millisecond) })
		time.AfterFunc(left, func() { m.atEngine(serve) })
		return
	}
	m.l.arrived(m)
	w.note("engine gets", m.what)
	serve()
}

// toProcess sends what the engine says; deliver is what the process does with it.
func (m *message) toProcess(what string, deliver func()) {
	w, l := m.l.w, m.l
	var lost bool
	var delay time.Duration
	m.draw(func(rng *rand.Rand) {
		lost = w.weather.loses(rng)
		delay = w.weather.delay(rng)
	})
	dead, _, cut := l.state(&l.cutIn)
	switch {
	case dead:
		return
	case cut:
		w.counts.hit("partitioned reply")
		return
	case lost:
		w.counts.hit("lost reply")
		return
	}
	delay += w.weather.left(&w.weather.stall) // a hung engine sends nothing either
	time.AfterFunc(delay, func() { m.atProcess(what, deliver) })
}

// atProcess delivers when the process is not standing still.
func (m *message) atProcess(what string, deliver func()) {
	dead, frozen, _ := m.l.state(nil)
	switch {
	case dead:
		return
	case frozen > 0:
		m.l.w.counts.hit("frozen reply")
		m.draw(func(rng *rand.Rand) { frozen += between(rng, 1, 2*time.Millisecond) })
		time.AfterFunc(frozen, func() { m.atProcess(what, deliver) })
		return
	}
	m.l.w.note("process gets", m.what, what)
	deliver()
}
