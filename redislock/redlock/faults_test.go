package redlock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/fence"
)

// TestFaults plays faults to real servers, and looks at what users see of them.
func TestFaults(t *testing.T) {
	f := newFleet(t)
	for name, check := range map[string]func(s *stage){
		"two nodes of five are killed, and all goes on":                       twoKilled,
		"three nodes of five are killed, and locks are unavailable, not held": threeKilled,
		"a majority that dies ends a wait as unavailable":                     majorityDiesDuringAWait,
		"a node that hung has nothing left when it goes on":                   hungNodeIsCleaned,
		"replies are lost while many contend, and in the end nothing is left": lostReplies,
		"a holder that stood still longer than its lease is fenced off":       staleHolderIsFenced,
		"eight clients whose requests meet are all served":                    eightContend,
		"a thousand goroutines of four clients are all served, one at a time": thousand,
		"a node that is away leaves little to do":                             awayIsCheap,
		"a hold that took several rounds is known to other drivers too":       roundsAreFound,
		"a majority that forgets is told with the reconnections":              restartIsTold,
		"a hold gets the vote of a node that was away, with its next renewal": voteIsTakenLater,
	} {
		t.Run(name, func(t *testing.T) {
			if err := f.play(check); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// client opens a client of the stage's servers.
func (s *stage) client(o *interlock.Options) *interlock.Client {
	c, err := interlock.New(s.open(), o)
	s.must(err == nil, "%v", err)
	s.defers = append(s.defers, func() { _ = c.Close() })
	return c
}

func (s *stage) kill(nodes ...int) {
	for _, i := range nodes {
		s.nodes[i].Kill()
	}
}

// lock locks.
func (s *stage) lock(c *interlock.Client) *interlock.Lease {
	l, err := c.Lock(s.within(patience), s.name)
	s.must(err == nil, "lock: %v", err)
	return l
}

func (s *stage) unlock(l *interlock.Lease) {
	err := l.Unlock(s.within(patience))
	s.must(err == nil, "unlock: %v", err)
}

// renewals returns options with a lease that is renewed often, and a signal of each renewal.
func renewals(lease time.Duration) (*interlock.Options, <-chan struct{}) {
	renewed := make(chan struct{}, 1000)
	return &interlock.Options{
		Lease: lease, Renewal: 150 * time.Millisecond,
		Observer: &interlock.Observer{Renewed: func(interlock.Event) { renewed <- struct{}{} }},
	}, renewed
}

// receive waits for a signal.
func receive[T any](s *stage, what string, signal <-chan T) (got T) {
	select {
	case got = <-signal:
	case <-time.After(patience):
		s.must(false, "not after %v: %s", patience, what)
	}
	return got
}

func twoKilled(s *stage) {
	o, renewed := renewals(long) // renewed by three nodes, however long the machine stands still
	a, b := s.client(o), s.client(nil)
	l := s.lock(a)
	receive(s, "a renewal", renewed)
	s.kill(1, 3)
	for len(renewed) > 0 {
		<-renewed
	}
	for range 3 {
		receive(s, "a renewal by three nodes", renewed)
	}
	s.must(l.Err() == nil, "with three of five nodes the hold was lost: %v", l.Err())
	_, err := b.TryLock(s.within(patience), s.name)
	s.must(errors.Is(err, interlock.ErrHeld), "try of a lock that is held by three nodes: %v", err)
	token := l.Token()
	s.unlock(l)
	next := s.lock(b)
	s.must(next.Token() > token, "token %d after %d", next.Token(), token)
	s.unlock(next)
}

func threeKilled(s *stage) {
	o, _ := renewals(1500 * time.Millisecond)
	a, b := s.client(o), s.client(nil)
	l := s.lock(a)
	s.kill(0, 2, 4)
	_, err := b.TryLock(s.within(patience), s.name)
	s.isUnavailable(err)
	_, err = b.Lock(s.within(4*shortTimeout), s.name)
	s.must(errors.Is(err, interlock.ErrUnavailable) && !errors.Is(err, interlock.ErrHeld),
		"lock without a majority: %v", err)
	receive(s, "the loss of the hold", l.Lost())
	for _, i := range []int{0, 2, 4} {
		s.nodes[i].Restart()
		s.marked(i)
	}
	s.unlock(s.lock(b))
}

func majorityDiesDuringAWait(s *stage) {
	a, b := s.open(), s.open("node-timeout=1s")
	s.take(a, s.ask())
	r := s.ask()
	waits := make(chan *driver.HeldError, 100)
	r.Waiting = func(h *driver.HeldError) { waits <- h }
	ended := make(chan error, 1)
	ctx := s.within(patience)
	go func() { // ends with Acquire
		_, err := b.Acquire(ctx, r)
		ended <- err
	}()
	receive(s, "the wait", waits)
	s.kill(0, 1, 2)
	s.isUnavailable(receive(s, "the end of the wait", ended))
}

func hungNodeIsCleaned(s *stage) {
	a := s.client(nil)
	l := s.lock(a)
	s.soon("the node has voted too", func() bool { return s.has(2) })
	s.nodes[2].Stop()
	s.unlock(l)
	b, err := interlock.New(s.openBeside(), nil)
	s.must(err == nil, "%v", err)
	s.unlock(s.lock(b))
	s.nodes[2].Cont()
	s.soon("the node that hung has nothing of the lock", func() bool { return !s.has(2) })
}

func lostReplies(s *stage) {
	var all sync.WaitGroup
	errs := make(chan error, 100)
	half := make(chan struct{}, 100)
	for range 3 {
		c := s.client(nil)
		all.Go(func() {
			for range 10 {
				if err := c.Do(s.t.Context(), s.name, func(context.Context) error { return nil }); err != nil {
					errs <- err
				}
				half <- struct{}{}
			}
		})
	}
	for range 5 {
		receive(s, "a hold", half)
	}
	s.proxies[0].DropReplies()
	s.proxies[3].DropReplies()
	all.Wait()
	close(errs)
	for err := range errs {
		s.must(false, "with the replies of two nodes lost: %v", err)
	}
	for _, i := range []int{0, 3} {
		s.proxies[i].Pass()
		s.proxies[i].Reset()
	}
	s.soon("no node has anything of the lock", func() bool {
		for i := range s.nodes {
			if s.has(i) {
				return false
			}
		}
		return true
	})
}

// resource is what the lock is for: it lets nobody write who is older than the newest that did.
type resource struct{ newest fence.Stamp }

func (r *resource) passes(s fence.Stamp) bool {
	if s.Token < r.newest.Token || s.Token == r.newest.Token && s.Nonce != r.newest.Nonce {
		return false
	}
	r.newest = s
	return true
}

func staleHolderIsFenced(s *stage) {
	a, b := s.client(nil), s.client(nil)
	var guard resource
	l, err := a.Mutex(s.name, &interlock.LockOptions{NoRenew: true, Lease: 2 * time.Second}).Lock(s.within(patience))
	s.must(err == nil, "%v", err)
	old, ok := l.Stamp()
	s.must(ok && guard.passes(old), "the holder's stamp is refused")
	next := s.lock(b) // when the lease of a, which stands still, is over
	stamp, ok := next.Stamp()
	s.must(ok && guard.passes(stamp), "the next holder's stamp is refused")
	s.must(!guard.passes(old), "the first holder writes after the second")
	s.unlock(next)
}

func eightContend(s *stage) {
	const clients, rounds = 8, 10
	var all sync.WaitGroup
	errs := make(chan error, clients*rounds)
	inside, in := 0, make(chan struct{}, 1)
	for range clients {
		c := s.client(nil)
		all.Go(func() {
			for range rounds {
				errs <- c.Do(s.t.Context(), s.name, func(context.Context) error {
					select {
					case in <- struct{}{}:
					default:
						return errors.New("two are inside")
					}
					inside++
					<-in
					return nil
				})
			}
		})
	}
	all.Wait()
	for range clients * rounds {
		err := <-errs
		s.must(err == nil, "%v", err)
	}
	s.must(inside == clients*rounds, "%d were inside", inside)
}

func thousand(s *stage) {
	const clients, goroutines = 4, 250
	var all sync.WaitGroup
	errs := make(chan error, clients*goroutines)
	count, last := 0, uint64(0)
	for range clients {
		c := s.client(nil)
		for range goroutines {
			all.Go(func() {
				l, err := c.Lock(s.t.Context(), s.name)
				if err != nil {
					errs <- err
					return
				}
				if count++; l.Token() <= last { // guarded by the lock, which the race detector checks
					err = fmt.Errorf("token %d after %d", l.Token(), last)
				}
				last = l.Token()
				errs <- errors.Join(err, l.Unlock(s.t.Context()))
			})
		}
	}
	all.Wait()
	for range clients * goroutines {
		err := <-errs
		s.must(err == nil, "%v", err)
	}
	s.must(count == clients*goroutines, "%d were inside", count)
}

func roundsAreFound(s *stage) {
	end := s.split()
	a, b, r := s.open(), s.open(), s.ask()
	granted := make(chan driver.Grant, 1)
	ctx := s.within(patience)
	go func() { // ends with Acquire
		if g, err := a.Acquire(ctx, r); err == nil {
			granted <- g
		}
	}()
	c := func() *claim { return a.holder(requestKey{r.Key, r.ID}) }
	s.soon("the request takes several rounds", func() bool {
		known := c()
		if known == nil {
			return false
		}
		known.mu.Lock()
		defer known.mu.Unlock()
		return known.rounds > 2
	})
	end()
	g := receive(s, "the grant", granted)
	s.must(g.Nonce != r.ID, "it took one round")
	err := s.renew(b, r)
	s.must(err == nil, "renewal by another driver: %v", err)
	s.give(b, r)
	s.soon("no node has anything left", func() bool {
		return !s.has(0) && !s.has(1) && !s.has(2) && !s.has(3) && !s.has(4)
	})
}

func awayIsCheap(s *stage) {
	d := s.open()
	cycles := func() {
		for range 3 * mostOwed {
			r := s.ask()
			s.take(d, r)
			s.give(d, r)
		}
	}
	left := func() int {
		d.mu.Lock()
		defer d.mu.Unlock()
		return len(d.current)
	}
	s.nodes[1].Stop()
	cycles()
	// Nodes that answer, but have been slow to, are told of the last ones meanwhile.
	s.soon("no more requests are still to be undone at a node that hangs than it may owe", func() bool {
		return left() <= mostOwed+1
	})
	s.nodes[1].Cont()
	s.soon("it has been told all", func() bool { return left() == 0 && !s.has(1) })
	s.kill(1)
	cycles()
	s.soon("nothing is left to tell a node that is dead", func() bool { return left() <= 1 })
}

func voteIsTakenLater(s *stage) {
	d := s.open()
	s.nodes[4].Stop()
	r := s.ask()
	s.take(d, r)
	s.nodes[4].Cont()
	s.soon("the node has the hold too", func() bool {
		err := s.renew(d, r)
		s.must(err == nil, "renewal: %v", err)
		return s.has(4)
	})
	s.give(d, r)
	s.soon("the node is free", func() bool { return !s.has(4) })
}

// The lease is far longer than the test: without the reconnections the holder would rely on a lock that others can take
// as soon as the nodes have rested.
func restartIsTold(s *stage) {
	a := s.client(&interlock.Options{Lease: long})
	l := s.lock(a)
	d := s.open() // like a, it hears of reconnections; so this knows when they were told
	told := make(chan struct{}, 100)
	defer d.OnReconnect(func() { told <- struct{}{} })()
	for _, i := range []int{0, 1} {
		s.kill(i)
		s.nodes[i].Restart()
		receive(s, "the reconnection", told)
		s.must(l.Err() == nil, "%d nodes of five have forgotten it, and it was lost: %v", i+1, l.Err())
	}
	s.kill(2)
	s.nodes[2].Restart()
	receive(s, "the loss", l.Lost())
	s.must(errors.Is(l.Err(), interlock.ErrLost), "the loss: %v", l.Err())
}
