package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/adapters/promlock"
	"github.com/interlock-go/interlock/examples/internal/bazaar"
	"github.com/interlock-go/interlock/examples/internal/part"
	_ "github.com/interlock-go/interlock/redislock" // opens redis://
	"github.com/redis/rueidis"
)

const shopPart = "shop"

var parts = map[string]func(context.Context, *part.Stage) error{shopPart: playShop}

// role is what a shop is started with.
type role struct {
	Redis     string // host:port
	Customers []string
	Slow      string // the customer who buys when the shop is told to
}

// order is what a shop is told.
type order struct {
	Slow bool // the slow customer is to buy; otherwise it is to say what was traded
}

// word is what a shop says.
type word struct {
	Metrics string // where it serves them, first

	Token uint64 // the slow customer is in the middle of a purchase under this token, and what follows is zero

	Reason interlock.LostReason // how the slow customer's lock was lost
	Told   string               // what the customer's context ended with
	Wrote  bool                 // whether the customer has bought nevertheless

	Trades, Failed int
	Err            string // of the last that failed
}

// shop is where customers trade.
type shop struct {
	role
	b    bazaar.Book
	lock *interlock.Mutex

	mu             sync.Mutex // guards what follows
	trades, failed int
	err            error // of the last that failed
}

// playShop lets the customers trade until the shop is closed, and does what it is told meanwhile.
func playShop(ctx context.Context, st *part.Stage) error {
	s := &shop{}
	if err := st.Arg(&s.role); err != nil {
		return err
	}
	metrics := promlock.New(nil)
	addr, stop, err := serveMetrics(ctx, metrics)
	if err != nil {
		return err
	}
	defer stop()
	leave, err := s.enter(ctx, metrics.Observer())
	if err != nil {
		return err
	}
	defer leave()
	var all sync.WaitGroup
	for _, name := range s.Customers {
		all.Go(func() { s.shopping(ctx, name) })
	}
	defer all.Wait()
	err = st.Send(word{Metrics: addr})
	for err == nil {
		var told order
		switch {
		case st.Receive(&told) != nil:
			return nil
		case told.Slow:
			err = s.buySlowly(ctx, st)
		default:
			err = st.Send(s.traded())
		}
	}
	return err
}

// enter opens the clients.
func (s *shop) enter(ctx context.Context, o *interlock.Observer) (leave func(), err error) {
	client, err := connect(s.Redis)
	if err != nil {
		return nil, err
	}
	locks, err := interlock.Open(ctx, "redis://"+s.Redis, &interlock.Options{Lease: lease, Observer: o})
	if err != nil {
		client.Close()
		return nil, err
	}
	s.b, s.lock = bazaar.Book{C: client}, marketLock(locks)
	return func() { _ = locks.Close(); client.Close() }, nil
}

func connect(addr string) (rueidis.Client, error) {
	return rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{addr}, DisableCache: true})
}

// marketLock is the lock of all trades. Its class is what metrics are told apart by.
func marketLock(locks *interlock.Client) *interlock.Mutex {
	return locks.Mutex("market", &interlock.LockOptions{Class: "market"})
}

// shopping lets a customer buy something, and then offer it again, until ctx ends. One whose trade has failed goes on:
// all trades are done as a whole or not at all, so goods and money are right in any case.
func (s *shop) shopping(ctx context.Context, name string) {
	for linger(ctx); ctx.Err() == nil; linger(ctx) {
		o, bought, err := buy(ctx, s.lock, s.b, name)
		s.count(ctx, err)
		if !bought {
			continue
		}
		linger(ctx)
		o.Seller = name
		err = s.lock.Do(ctx, func(ctx context.Context) error {
			_, err := s.b.List(ctx, name, o)
			return err
		})
		s.count(ctx, err)
	}
}

// buy buys anything that is for sale.
func buy(ctx context.Context, lock *interlock.Mutex, b bazaar.Book, name string) (
	o bazaar.Offer, bought bool, err error,
) {
	err = lock.Do(ctx, func(ctx context.Context) (err error) {
		var found bool
		if o, found, err = b.Pick(ctx); !found || err != nil {
			return err
		}
		bought, err = b.Buy(ctx, name, o)
		return err
	})
	return o, bought, err
}

// linger is how long a customer looks around: so long that a slow machine has no queue of them when nothing is wrong.
func linger(ctx context.Context) {
	wait := time.NewTimer(2*time.Second + rand.N(4*time.Second))
	defer wait.Stop()
	select {
	case <-wait.C:
	case <-ctx.Done():
	}
}

func (s *shop) count(ctx context.Context, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err == nil:
		s.trades++
	case ctx.Err() == nil:
		s.failed++
		s.err = err
	}
}

// traded says what was traded so far.
func (s *shop) traded() word {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := word{Trades: s.trades, Failed: s.failed}
	if s.err != nil {
		w.Err = s.err.Error()
	}
	return w
}

// buySlowly is a purchase that is stopped between its last look and its change, and then goes on. To hold a lock is not
// enough then: the lease's context says whether it is still held. A moment may pass between a process that goes on and
// the end of its contexts; where that matters, the resource has to check the fencing stamp as well.
func (s *shop) buySlowly(ctx context.Context, st *part.Stage) error {
	lease, err := s.lock.Lock(ctx)
	if err != nil {
		return err
	}
	work := lease.Context(ctx)
	o, found, err := s.b.Pick(work)
	if err != nil || !found {
		return fmt.Errorf("nothing is for sale: %w", errors.Join(err, lease.Unlock(ctx)))
	}
	if err := st.Send(word{Token: lease.Token()}); err != nil {
		return err
	}
	<-work.Done() // here the process stands still
	w := word{Told: context.Cause(work).Error()}
	if lost := (*interlock.LostError)(nil); errors.As(context.Cause(work), &lost) {
		w.Reason = lost.Reason
	}
	w.Wrote, _ = s.b.Buy(work, s.Slow, o)
	_ = lease.Unlock(ctx) // says once more that it is lost
	return st.Send(w)
}
