package redislock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// puppet is a Conn without a server, in virtual time: the check says what is answered and what is pushed.
type puppet struct {
	sharded bool
	answer  func(c *Call) Reply
	handler Handler
	channel string
	begin   time.Time
	fast    float64 // how much faster the server's clock runs than ours, for instance 0.005

	mu      sync.Mutex // guards what follows
	calls   []Call
	times   []time.Time
	beats   []time.Time // when the process said that it is alive
	listen  int         // how many calls there were when the driver first listened; -1 if it has not
	listens int         // how often it has
}

func (p *puppet) Start(_ context.Context, channel string, h Handler) error {
	p.channel, p.handler = channel, h
	return nil
}

func (p *puppet) Sharded() bool { return p.sharded }

func (p *puppet) Call(_ context.Context, c *Call) Reply {
	p.mu.Lock()
	own := *c
	own.Args = append([]string(nil), c.Args...)
	if c.Script == aliveScript {
		p.beats = append(p.beats, time.Now())
		p.mu.Unlock()
		return Reply{Text: "1 known"}
	}
	p.calls, p.times = append(p.calls, own), append(p.times, time.Now())
	p.mu.Unlock()
	return p.answer(&own)
}

func (p *puppet) Batch(ctx context.Context, calls []Call, done func(i int, r Reply)) {
	for i := range calls {
		done(i, p.Call(ctx, &calls[i]))
	}
}

func (p *puppet) Listen(context.Context, uint16, string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.listen < 0 {
		p.listen = len(p.calls)
	}
	p.listens++
	return nil
}

func (p *puppet) Unlisten(uint16, string)               {}
func (p *puppet) Nodes(context.Context) ([]Node, error) { return nil, nil }
func (p *puppet) Close() error                          { return nil }

// now is the server's clock.
func (p *puppet) now() int64 { return p.at(time.Now()) }

func (p *puppet) at(t time.Time) int64 {
	elapsed := float64(t.Sub(p.begin).Microseconds())
	return 1_795_000_000_000_000 + int64(elapsed*(1+p.fast))
}

func (p *puppet) asked() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.calls)
}

func (p *puppet) listened() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.listens
}

func (p *puppet) queue(l Link) Reply { return p.queueUntil(l, 1, 0) }

func (p *puppet) queueUntil(l Link, place int, next time.Duration) Reply {
	return Reply{Text: fmt.Sprintf("Q %d %d %s 0 0 0 ", p.now(), place, inMillis(next)), Link: l, Acked: 1}
}

func (p *puppet) grants(c *Call, l Link, acked int) Reply {
	return Reply{Text: fmt.Sprintf("G %d 7 1 %s %s", p.now(), c.Args[0], c.Args[1]), Link: l, Acked: acked}
}

// push sends a grant that was made at that instant of the server's clock.
func (p *puppet) push(l Link, at int64) {
	p.handler.Pushed(l, p.channel, fmt.Sprintf("G r %d 7 1 r 2000", at))
}

// acquired is what came of an Acquire.
type acquired struct {
	grant driver.Grant
	err   error
}

// acquireLater begins a request for a minute, and returns when it waits for good or has been answered.
func acquireLater(d *Driver) <-chan acquired {
	word := make(chan acquired, 1)
	go func() {
		g, err := d.Acquire(context.Background(), puppetRequest())
		word <- acquired{g, err}
	}()
	synctest.Wait()
	return word
}

func puppetRequest() *driver.Request {
	return &driver.Request{
		Key: driver.Key{Kind: driver.KindMutex, Name: "x"}, ID: "r", Owner: "o", Weight: 1, Tokens: 1,
		Lease: time.Minute,
	}
}

// driverRule is a rule that the driver carries, not the scripts.
type driverRule struct {
	name     string
	switches []string // that take it out, see rules_switches_test.go
	opts     Options
	check    func(p *puppet, d *Driver) error
}

// run checks the rule in a bubble.
func (r *driverRule) run(t *testing.T) (err error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		p := &puppet{begin: time.Now(), listen: -1}
		p.answer = func(*Call) Reply { return p.queue(1) }
		opts := r.opts
		opts.Check = CheckNone
		d, fault := start(t.Context(), p, &opts)
		if fault != nil {
			t.Fatal(fault)
		}
		err = r.check(p, d)
		_ = d.Close()
		synctest.Wait()
	})
	return err
}

// pushedTo has the driver wait for the given time and then hear of a grant, which was made a while before by
// the server's clock. From then on it grants whoever asks. It returns what came of it within a moment, and
// whether the driver asked.
func pushedTo(p *puppet, d *Driver, l Link, wait time.Duration, at func() int64) (a acquired, asked bool, err error) {
	word := acquireLater(d)
	time.Sleep(wait)
	synctest.Wait()
	p.answer = func(c *Call) Reply { return p.grants(c, l, 1) }
	before := p.asked()
	p.push(l, at())
	time.Sleep(10 * time.Millisecond)
	synctest.Wait()
	select {
	case a = <-word:
		return a, p.asked() > before, a.err
	default:
		return a, p.asked() > before, errors.New("a push ended nothing")
	}
}

// confirmed is an error unless the driver has asked.
func confirmed(a acquired, asked bool, err error) error {
	if err == nil && !asked {
		return fmt.Errorf("a push was trusted that tells nothing: %+v", a.grant)
	}
	return err
}
