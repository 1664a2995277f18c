package sim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/interlock-go/interlock"
)

// closeTimeout is the client's.
const closeTimeout = time.Second

// process is one simulated process. It lives several times: a life ends by a crash or by a close, and the next one
// has a client and a link of its own.
type process struct {
	w      *world
	number int
	rng    *rand.Rand
	orders chan ending // how the nemesis ends a life
	mu     sync.Mutex  // guards life
	life   *life
}

// ending says how a life ends.
type ending int

const (
	crash ending = iota
	reopen
)

// life is a process from its start to its end.
type life struct {
	p       *process
	link    *link
	client  *interlock.Client
	ctx     context.Context //nolint:containedctx // the life itself
	end     context.CancelFunc
	crashed atomic.Bool
	workers sync.WaitGroup
}

func (w *world) newProcess(number int) *process {
	return &process{
		w: w, number: number, rng: w.random("process " + strconv.Itoa(number)), orders: make(chan ending, 1),
	}
}

// current returns the life that is going on.
func (p *process) current() *life {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.life
}

// run lives until the run is wound up.
func (p *process) run(over <-chan struct{}) {
	for n := 1; ; n++ {
		f := p.begin(n)
		select {
		case how := <-p.orders:
			f.finish(how)
		case <-over:
			f.retire()
			return
		}
		time.Sleep(between(p.rng, 20*time.Millisecond, 800*time.Millisecond)) // virtual
	}
}

// begin starts a life.
func (p *process) begin(n int) *life {
	w := p.w
	f := &life{p: p, link: w.newLink(fmt.Sprintf("p%d.%d", p.number, n))}
	f.ctx, f.end = context.WithCancel(w.ctx)
	f.client = f.open()
	for i := range workers {
		name := fmt.Sprintf("%s.w%d", f.link.name, i)
		f.workers.Go((&worker{f: f, w: w, name: name, rng: w.random(name)}).run)
	}
	p.mu.Lock()
	p.life = f
	p.mu.Unlock()
	w.note(f.link.name, "begins")
	return f
}

// open makes the client.
func (f *life) open() *interlock.Client {
	w := f.p.w
	c, err := interlock.New(f.link, &interlock.Options{
		Lease: defaultLease, Renewal: defaultRenewal, ClientName: f.link.name, CloseTimeout: closeTimeout,
		LocalHandoffs: 3 + f.p.number, LocalHandoffTime: 150 * time.Millisecond,
		Observer: &interlock.Observer{
			Acquired: func(_ context.Context, e interlock.Event) {
				if e.Local {
					w.counts.hit("local pass")
				}
			},
			Renewed: func(interlock.Event) { w.counts.hit("renewal") },
			Lost:    f.lost,
		},
	})
	if err != nil {
		panic(err) // the options above are wrong
	}
	return c
}

// lost counts and writes down a loss.
func (f *life) lost(e interlock.Event) {
	if f.crashed.Load() {
		return
	}
	reason := lossOf(e.Err)
	f.p.w.counts.hit("lost: " + string(reason))
	f.p.w.note(f.link.name, "loses", e.Name, strconv.FormatUint(e.Token, 10), string(reason))
	if !f.p.w.conf.faults && reason != interlock.LostExpired {
		f.p.w.violate(steady, "%s: token %d was lost (%s) without a fault", e.Name, e.Token, reason)
	}
}

// finish ends the life as ordered.
func (f *life) finish(how ending) {
	if how == crash {
		f.crash()
		return
	}
	f.p.w.counts.hit("re-opened client")
	f.close()
	time.Sleep(between(f.p.rng, 1, time.Millisecond)) // virtual
	f.end()
	f.workers.Wait()
}

// crash ends the life without a word. What is left of the client in this real process is closed, so that the bubble
// can end; nothing of that leaves the simulated one.
func (f *life) crash() {
	f.p.w.note(f.link.name, "crashes")
	f.crashed.Store(true)
	f.link.kill()
	f.end()
	_ = f.client.Close()
	f.workers.Wait()
}

// close is Client.Close, checked.
func (f *life) close() {
	f.p.w.note(f.link.name, "closes")
	begun := time.Now()
	_ = f.client.Close() // what it could not confirm ends with its lease
	f.p.w.within("Close", begun.Add(closeTimeout))
	f.p.w.note(f.link.name, "has closed")
	_ = f.link.Close()
}

// retire ends the last life: its workers finish and the client is closed, or it crashes in the middle, so that what is
// left must disappear by itself.
func (f *life) retire() {
	if f.p.w.conf.faults && f.p.rng.IntN(3) == 0 {
		f.p.w.counts.hit("crash at the end")
		f.crash()
		return
	}
	f.workers.Wait()
	f.close()
	f.end()
}
