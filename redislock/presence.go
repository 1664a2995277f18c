// Signs of life of this process, for queues with many waiters (docs/rationale.md, Silent waiters, and wire.md).
// acquire.go enters and leaves, and asks here how long a waiter may pause; scripts/alive.lua records them, and
// scripts/presence.lua reads them.

package redislock

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/redislock/conn"
)

const (
	// heartbeatEvery is how often a process says that it is alive, and how often a waiter asks, while there are few.
	// With many of them each comes later: perProcess for each process, perWaiter for each waiter. All together then
	// cost the server no more than a few hundredths of its time.
	heartbeatEvery = time.Second
	perProcess     = 5 * time.Millisecond
	perWaiter      = 20 * time.Millisecond
	// longestHeartbeat and mostPause bound how long a process, and a waiter in it, says nothing. Two of the requests
	// that keep a place may be lost at these values; see queuePlaceLasts.
	longestHeartbeat = 24 * time.Second
	mostPause        = 3 * time.Minute
	// scouts is how many of all waiters ask when something may have changed by itself, such as the death of a holder.
	// The others need not: a process dies as a whole, so it is enough that some of each process ask.
	scouts = 500
)

// presence tells the server that this process is alive, on behalf of all waiters in it, whose own requests may be rare.
// It is not used in a Cluster, where it would have to be said in each slot, nor for waits with a shorter claim than the
// usual one, which must give signs more often. A timer runs it while anybody waits; there is no goroutine in between.
type presence struct {
	mu     sync.Mutex  // guards what follows; nothing blocks under it
	waits  int         // how many waiters are in this process
	others int         // how many processes the server knows, as of the last answer
	timer  *time.Timer // made with the first waiter; it runs tick in a goroutine of its own
	ticks  bool        // the timer runs, or a tick is under way
	spoken bool        // the server has heard a sign of life since ticks became true
	closed bool
	// left are requests whose withdrawal was refused, by ID, and when their places end at the latest. A sign of life
	// would keep these places with all others, so while there are any the process is silent, and its waiters ask for
	// themselves.
	left map[string]time.Time
}

// spokenFor reports whether the process speaks for the attempt while it waits.
func (a *attempt) spokenFor() bool {
	return a.claim == mostClaim && a.cond == nil && !a.r.Try && !a.d.conn.Sharded() && !a.d.presence.isSilent()
}

// isSilent reports whether the process may give no sign of life, because of what it could not withdraw.
func (p *presence) isSilent() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.silent()
}

// silent is isSilent for a caller that holds p.mu.
func (p *presence) silent() bool {
	if len(p.left) == 0 { // nearly always
		return false
	}
	now := time.Now()
	for id, until := range p.left {
		if !now.Before(until) {
			delete(p.left, id)
		}
	}
	return len(p.left) > 0
}

// withdrew takes in the outcome of a withdrawal. If the server has refused it, the process falls silent: otherwise the
// place would stay in the queue for as long as others wait here, and cost the queue a claim each time it is its turn.
// The waiters must ask before the server takes the process for dead.
func (p *presence) withdrew(d *Driver, id string, err error) {
	if d.conn.Sharded() {
		return // each place has signs of life of its own, which have ended
	}
	p.mu.Lock()
	before := p.silent()
	_, known := p.left[id]
	switch {
	case driver.Refusal(err) == nil && (err == nil || errors.Is(err, driver.ErrLost)):
		delete(p.left, id)
	case driver.Refusal(err) != nil && !known:
		if p.left == nil {
			p.left = make(map[string]time.Time)
		}
		p.left[id] = time.Now().Add(mostQueued)
	}
	falls := !before && p.silent()
	if falls && p.ticks && !p.closed {
		p.timer.Reset(heartbeatEvery)
	}
	p.mu.Unlock()
	if falls {
		(*listener)(d).allAskAgain()
	}
}

// enter counts a waiter and starts the timer if it does not run. The first sign of life may wait for a whole interval:
// the waiter's own request counts as one for longer than that.
func (p *presence) enter(d *Driver) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waits++
	if p.ticks || p.closed {
		return
	}
	p.ticks = true
	if p.timer == nil {
		p.timer = time.AfterFunc(heartbeatEvery, func() { p.tick(d) })
	} else {
		p.timer.Reset(heartbeatEvery)
	}
}

// leave counts a waiter out. The timer stops itself at its next tick.
func (p *presence) leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waits--
}

// stop ends the signs of life. A call under way ends with its connection.
func (p *presence) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	if p.timer != nil {
		p.timer.Stop()
	}
}

// pause returns how long a waiter in a queue of that length may leave the server alone. It is usual where few wait.
func (p *presence) pause(usual time.Duration, length int) time.Duration {
	p.mu.Lock()
	many := max(length, p.waits, p.others) // none of the three alone is the number of all waiters
	p.mu.Unlock()
	if long := min(time.Duration(many)*perWaiter, mostPause); long > usual {
		return long - rand.N(long/10+1)
	}
	return usual
}

// mustScout reports whether a waiter in a queue of that length must ask when something may have changed by itself.
// Where few wait, all must. Otherwise its luck, from 0 to 1, decides for the whole wait: if it were drawn anew each
// time, the waiters whose pause is long would soon all be non-scouts.
func (p *presence) mustScout(length int, luck float64) bool {
	p.mu.Lock()
	all := max(p.others*p.waits, length)
	p.mu.Unlock()
	return luck*float64(all) < scouts
}

// every is how often the process says that it is alive. The caller holds p.mu.
func (p *presence) every() time.Duration {
	return min(max(heartbeatEvery, time.Duration(p.others)*perProcess), longestHeartbeat)
}

// tick runs in the timer's goroutine, and sets the timer again itself, when its call has been answered. Nothing runs
// while nobody waits.
func (p *presence) tick(d *Driver) {
	p.mu.Lock()
	every := p.every()
	p.ticks = p.waits > 0 && !p.closed
	p.spoken = p.spoken && p.ticks
	speaks, silent := p.ticks, p.silent()
	if speaks && silent && !p.spoken { // the last sign was taken back; the next must come as soon as it may
		p.timer.Reset(heartbeatEvery)
		speaks = false
	}
	p.mu.Unlock()
	if !speaks {
		return
	}
	lasts := 2 * every // so that one sign may be lost
	if silent {
		lasts = time.Millisecond // once, which takes back the sign before it
	}
	// It is bounded by half an interval, so that a server that hangs does not delay the next sign until the last one
	// has expired.
	//nolint:forbidigo // for all waiters here, not for one; and short enough that the next is in time
	ctx, cancel := context.WithTimeout(context.Background(), every/2)
	answer := d.sayAlive(ctx, lasts)
	cancel()
	p.mu.Lock()
	defer p.mu.Unlock()
	n, known, err := parseAliveAnswer(answer)
	// The server has taken this process for dead meanwhile: waiters in it may have been passed over.
	if err == nil && p.spoken && !known && !silent {
		defer (*listener)(d).allAskAgain()
	}
	next := p.answered(n, every, err)
	p.spoken = p.spoken && (!silent || err != nil)
	if !p.closed {
		p.timer.Reset(next - rand.N(next/10+1))
	}
}

// answered takes in the answer to a sign of life that lasts for twice said: n processes are known now, or err. It
// returns when to give the next sign. That is never later than was said, although more processes would allow it: the
// server expects this one. The caller holds p.mu.
func (p *presence) answered(n int, said time.Duration, err error) (next time.Duration) {
	if err != nil {
		// The call took at most half of said, and the sign before it lasts for all of it. A quarter leaves time for
		// another try.
		return said / 4
	}
	p.others, p.spoken = n, true
	return min(p.every(), said)
}

// hurry makes the process say soon that it is alive, because the server may not have heard it for a while. The instant
// is random: all processes lose their connections at the same moment in a failover.
func (p *presence) hurry() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ticks && !p.closed {
		p.timer.Reset(rand.N(heartbeatEvery))
	}
}

// parseAliveAnswer reads the answer of alive or watch: how many there are, and whether this one was among them until
// now.
func parseAliveAnswer(answer Reply) (n int, known bool, err error) {
	if answer.Err != nil {
		return 0, false, answer.Err
	}
	number, was, _ := strings.Cut(answer.Text, " ")
	n, err = strconv.Atoi(number)
	return n, was == "known", err
}

// sayAlive says once that this process is alive for so long from now.
func (d *Driver) sayAlive(ctx context.Context, lasts time.Duration) Reply {
	return d.conn.Call(ctx, &Call{
		Script: aliveScript, Slot: conn.SlotOf(d.names.alive()), Keys: []string{d.names.alive()},
		Args: []string{d.process, inMillis(lasts)},
	})
}
