package redislock

import (
	"context"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/interlock-go/interlock/redislock/conn"
)

const (
	// heartbeatEvery is how often a process says that it is alive, and how often who waits asks, where few wait. Where
	// many do, each comes the later the more there are: after perProcess for each process, and perWaiter for each that
	// waits, so that all together cost the server no more than a few hundredths of its time.
	heartbeatEvery = time.Second
	perProcess     = 5 * time.Millisecond
	perWaiter      = 20 * time.Millisecond
	// longestHeartbeat and mostPause bound how long a process, and who waits in it, says nothing. Then two of the
	// requests that keep a place may be lost; see queuePlaceLasts.
	longestHeartbeat = 24 * time.Second
	mostPause        = 3 * time.Minute
	// scouts is how many of all that wait ask when something may have changed by itself, such as that a holder has
	// died. The others need not: a process dies as a whole, so it is enough that some of each process do.
	scouts = 500
)

// presence says to the server that this process is alive, for all who wait in it: their own requests may be rare then.
// It is not for a Cluster, where it would have to be said in each slot, nor for waits with a claim time below the usual
// one, which have to be heard of more often.
type presence struct {
	mu     sync.Mutex // guards what follows; nothing blocks under it
	waits  int        // who waits here
	others int        // how many processes the server knows of
	timer  *time.Timer
	ticks  bool // the timer runs
	spoken bool // since it does, the server has heard that this process is alive
	closed bool
}

// spokenFor reports whether the process speaks for the attempt while it waits.
func (a *attempt) spokenFor() bool {
	return a.claim == mostClaim && a.cond == nil && !a.r.Try && !a.d.conn.Sharded()
}

// enter counts one who waits. Its request counts as a sign of life for longer than it takes until the first beat.
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

func (p *presence) leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waits--
}

// stop ends the beats. A call under way ends with the connection.
func (p *presence) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	if p.timer != nil {
		p.timer.Stop()
	}
}

// pause is how long who waits may leave the server alone, in a queue of that length; it is usual where few wait.
func (p *presence) pause(usual time.Duration, length int) time.Duration {
	p.mu.Lock()
	many := max(length, p.waits, p.others)
	p.mu.Unlock()
	if long := min(time.Duration(many)*perWaiter, mostPause); long > usual {
		return long - rand.N(long/10+1)
	}
	return usual
}

// scouts reports whether one who waits here, in a queue of that length, is to ask when something may have
// changed by itself. All are, where few wait; else it is for life, by its luck of 0 to 1, or those who are not
// would soon be left alone.
func (p *presence) scouts(length int, luck float64) bool {
	p.mu.Lock()
	all := max(p.others*p.waits, length)
	p.mu.Unlock()
	return luck*float64(all) < scouts
}

// every is how often the process says that it is alive. The caller holds p.mu.
func (p *presence) every() time.Duration {
	return min(max(heartbeatEvery, time.Duration(p.others)*perProcess), longestHeartbeat)
}

// tick is the timer's. Nothing runs while nobody waits.
func (p *presence) tick(d *Driver) {
	p.mu.Lock()
	every := p.every()
	p.ticks = p.waits > 0 && !p.closed
	p.spoken = p.spoken && p.ticks
	speaks := p.ticks
	p.mu.Unlock()
	if !speaks {
		return
	}
	//nolint:forbidigo // for all who wait here, not for one; and short enough that the next is in time
	ctx, cancel := context.WithTimeout(context.Background(), every/2)
	answer := d.sayAlive(ctx, every)
	cancel()
	p.mu.Lock()
	defer p.mu.Unlock()
	n, known, err := among(answer)
	if err == nil && p.spoken && !known { // those who wait here may have been passed over
		defer (*listener)(d).askAll()
	}
	next := p.answered(n, every, err)
	if !p.closed {
		p.timer.Reset(next - rand.N(next/10+1))
	}
}

// answered takes in what the server says to a sign of life that lasts for twice as long as said: of how many
// processes it knows now, or err. It returns when to give the next, in time for what was said: many may have come
// since. The caller holds p.mu.
func (p *presence) answered(n int, said time.Duration, err error) (next time.Duration) {
	if err != nil {
		return said / 4 // the call took half of said at most, and what the one before it said lasts for all of it
	}
	p.others, p.spoken = n, true
	return min(p.every(), said)
}

// hurry has the process say soon that it is alive, because the server may not have heard it for a while.
func (p *presence) hurry() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ticks && !p.closed {
		p.timer.Reset(rand.N(heartbeatEvery))
	}
}

// among reads the answer of alive or watch: how many there are, and whether this one was among them until now.
func among(answer Reply) (n int, known bool, err error) {
	if answer.Err != nil {
		return 0, false, answer.Err
	}
	number, was, _ := strings.Cut(answer.Text, " ")
	n, err = strconv.Atoi(number)
	return n, was == "known", err
}

// sayAlive says it once, for twice as long as it takes until the next time, so that one may be lost.
func (d *Driver) sayAlive(ctx context.Context, every time.Duration) Reply {
	return d.conn.Call(ctx, &Call{
		Script: aliveScript, Slot: conn.SlotOf(d.names.alive()), Keys: []string{d.names.alive()},
		Args: []string{d.process, inMillis(2 * every)},
	})
}
