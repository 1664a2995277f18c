package sim

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/memlock"
)

const (
	// oneWay is how long a message is under way, at least, and jitter how much longer at most.
	oneWay, jitter = 50 * time.Microsecond, 10 * time.Microsecond
	// service is what a message costs the server, which serves one after the other. A Redis needs 20 to 55 µs for each,
	// see the table of growth in docs/evidence/bench/redis-growth.md.
	service = 30 * time.Microsecond
	// claimLife is for how long a pushed grant lasts until it is claimed.
	claimLife = 2 * time.Second
)

// pace says how a client that waits shows that it lives, when so many wait.
type pace struct {
	name  string
	beats []func(waiting int) time.Duration // the pause of each kind of message
}

// bounded is a pause for each that waits, between two bounds.
func bounded(each, least, most time.Duration) func(int) time.Duration {
	return func(waiting int) time.Duration { return min(max(time.Duration(waiting)*each, least), most) }
}

var (
	// ofRedislock is the pace of redislock: its process says that it lives, and more rarely its request is repeated.
	// The numbers are those of redislock's presence.
	ofRedislock = pace{"pace of redislock", []func(int) time.Duration{
		bounded(5*time.Millisecond, time.Second, 24*time.Second),
		bounded(20*time.Millisecond, time.Second, 3*time.Minute),
	}}
	// eachSecond is the control: it shows what the pace is good for.
	eachSecond = pace{"one beat a second", []func(int) time.Duration{bounded(0, time.Second, time.Second)}}
)

// crowdServer is one server, that does one thing at a time, with the reference engine inside.
type crowdServer struct {
	engine *memlock.Driver
	pace   pace

	mu       sync.Mutex    // guards what is below
	idle     time.Time     // by then it has done what has been sent to it
	busy     time.Duration // all of its work
	messages int           // that it got
	waiting  int
}

// send has the server do something as soon as it has got there and has its turn.
func (s *crowdServer) send(delay time.Duration, serve func()) {
	time.AfterFunc(delay, func() {
		s.mu.Lock()
		now := time.Now()
		if s.idle.Before(now) {
			s.idle = now
		}
		s.idle = s.idle.Add(service)
		s.busy += service
		s.messages++
		turn := s.idle.Sub(now)
		s.mu.Unlock()
		time.AfterFunc(turn, serve)
	})
}

// waits counts who waits.
func (s *crowdServer) waits(by int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting += by
}

// crowd is how many wait.
func (s *crowdServer) crowd() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.waiting
}

// crowdLink is one client's way to the server: nothing is lost on it.
type crowdLink struct {
	s    *crowdServer
	peer *memlock.Driver

	mu  sync.Mutex // guards rng
	rng *rand.Rand
}

var (
	_ driver.Driver  = (*crowdLink)(nil)
	_ driver.Renewer = (*crowdLink)(nil)
)

func (s *crowdServer) link(number int) *crowdLink {
	return &crowdLink{s: s, peer: s.engine.Peer(), rng: rand.New(rand.NewPCG(1, uint64(number)))}
}

// delay is drawn to the nanosecond, so that hardly ever two things happen at one instant.
func (l *crowdLink) delay() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return between(l.rng, oneWay, oneWay+jitter)
}

// Traits are the memory engine's, except that it is far away.
func (l *crowdLink) Traits() driver.Traits {
	t := l.peer.Traits()
	t.Local = false
	return t
}

// Close ends the client's part in the engine.
func (l *crowdLink) Close() error { return l.peer.Close() }

// Acquire asks once, and then says that it lives until the grant has come.
func (l *crowdLink) Acquire(ctx context.Context, r *driver.Request) (g driver.Grant, err error) {
	answered, sent, own := make(chan struct{}), time.Now(), *r
	waited := false
	own.Waiting = func(held *driver.HeldError) {
		waited = true
		l.s.waits(1)
		time.AfterFunc(l.delay(), func() { r.Waiting(held) })
	}
	l.s.send(l.delay(), func() {
		arrived := time.Now()
		g, err = l.peer.Acquire(ctx, &own)
		if waited {
			l.s.waits(-1)
			g.Lease = min(g.Lease, claimLife) // pushed: the core claims the rest
		}
		g.Sent = g.Sent.Add(sent.Sub(arrived))
		time.AfterFunc(l.delay(), func() { close(answered) })
	})
	for _, beat := range l.s.pace.beats {
		stop := l.beat(beat)
		defer stop()
	}
	<-answered
	return g, err
}

// beat sends one kind of message again and again until stop is called. What it is about is nothing to the engine here,
// of which nobody is ever lost.
func (l *crowdLink) beat(pause func(waiting int) time.Duration) (stop func() bool) {
	var timer *time.Timer
	timer = time.AfterFunc(pause(0)+l.delay(), func() {
		l.s.send(l.delay(), func() {})
		timer.Reset(pause(l.s.crowd()) + l.delay())
	})
	return timer.Stop
}

// exchange waits for the answer to one message.
func (l *crowdLink) exchange(serve func()) {
	answered := make(chan struct{})
	l.s.send(l.delay(), func() {
		serve()
		time.AfterFunc(l.delay(), func() { close(answered) })
	})
	<-answered
}

// Release gives back with one message.
func (l *crowdLink) Release(ctx context.Context, r *driver.Release) (err error) {
	l.exchange(func() { err = l.peer.Release(ctx, r) })
	return err
}

// Renew sends the batch as one message.
func (l *crowdLink) Renew(ctx context.Context, batch []driver.Renewal, done func(i int, err error)) {
	said := make([]error, len(batch))
	l.exchange(func() { l.peer.Renew(ctx, batch, func(i int, err error) { said[i] = err }) })
	for i, err := range said {
		done(i, err)
	}
}
