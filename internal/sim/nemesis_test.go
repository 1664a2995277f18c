package sim

import (
	"context"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/interlock-go/interlock"
)

// nemesis does the harm that goes beyond single messages.
type nemesis struct {
	w         *world
	rng       *rand.Rand
	processes []*process
}

// run does harm for as long as the configuration says. Every harm ends by itself, the last one at most longestHarm
// later.
func (n *nemesis) run() {
	end := time.Now().Add(n.w.conf.trouble)
	for {
		time.Sleep(between(n.rng, 200*time.Millisecond, 1800*time.Millisecond)) // virtual
		if time.Now().After(end) {
			return
		}
		n.strike()
	}
}

const longestHarm = 4 * time.Second

// strike does one harm.
func (n *nemesis) strike() {
	p := n.victim()
	f := p.current()
	holds := false
	for _, number := range n.w.beliefs.holders() {
		holds = holds || number == p.number
	}
	d := between(n.rng, 50*time.Millisecond, longestHarm)
	l := f.link
	switch n.rng.IntN(9) {
	case 0:
		l.until(&l.cutOut, d)
		n.struck("one-way partition, requests", l, holds)
	case 1:
		l.until(&l.cutIn, d)
		n.struck("one-way partition, replies", l, holds)
	case 2:
		l.until(&l.cutOut, d)
		l.until(&l.cutIn, d)
		n.struck("two-way partition", l, holds)
	case 3, 4:
		l.until(&l.frozen, d)
		n.struck("pause", l, holds)
	case 5:
		n.end(p, crash)
		n.struck("crash", l, holds)
	case 6:
		n.end(p, reopen)
		n.struck("re-open", l, holds)
	case 7:
		n.w.weather.raise(&n.w.weather.stall, d/2)
		n.struck("stall", l, holds)
	case 8:
		if n.rng.IntN(2) == 0 {
			n.w.weather.raise(&n.w.weather.storm, d)
			n.struck("storm", l, holds)
			return
		}
		n.w.weather.raise(&n.w.weather.mud, d)
		n.struck("mud", l, holds)
	}
}

// victim picks a process, every other time one that has somebody inside.
func (n *nemesis) victim() *process {
	in := n.w.beliefs.holders()
	if len(in) > 0 && n.rng.IntN(2) == 0 {
		return n.processes[in[n.rng.IntN(len(in))]]
	}
	return n.processes[n.rng.IntN(len(n.processes))]
}

// end ends p's life, unless it is ending already.
func (n *nemesis) end(p *process, how ending) {
	select {
	case p.orders <- how:
	default:
	}
}

// struck writes a harm down.
func (n *nemesis) struck(what string, l *link, holds bool) {
	n.w.counts.hit("harm: " + what)
	if holds {
		n.w.counts.hit("harm to a holder")
	}
	n.w.note("nemesis:", what, l.name)
}

// operator lists the locks now and then, and breaks one.
func (w *world) operate(l *link, c *interlock.Client, over <-chan struct{}) {
	rng := w.random("operator")
	for {
		timer := time.NewTimer(between(rng, time.Second, 5*time.Second))
		select {
		case <-timer.C:
			w.breakOne(rng, l, c)
		case <-over:
			timer.Stop()
			return
		}
	}
}

// breakOne breaks the lock of somebody who holds one.
func (w *world) breakOne(rng *rand.Rand, l *link, c *interlock.Client) {
	d := between(rng, 50*time.Millisecond, time.Second)
	ctx, cancel := context.WithTimeout(w.ctx, d)
	defer cancel()
	end := time.Now().Add(d)
	var held []interlock.LockInfo
	for info, err := range c.List(ctx, "") {
		if err == nil && len(info.Holders) > 0 {
			held = append(held, info)
		}
	}
	w.within("Locks", end)
	if len(held) == 0 || ctx.Err() != nil {
		return
	}
	info := held[rng.IntN(len(held))]
	err := c.Break(ctx, info.Kind, info.Name, info.Holders[0].Token)
	w.within("Break", end)
	w.note(l.name, "breaks", info.Name, strconv.FormatUint(info.Holders[0].Token, 10))
	if err == nil {
		w.counts.hit("break that was confirmed")
	}
}
