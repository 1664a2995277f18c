package main

import (
	"context"

	"github.com/interlock-go/interlock/examples/internal/bazaar"
	"github.com/redis/rueidis"
)

// watchDesk trades optimistically: it watches what it reads, and begins again when that has changed before its change.
type watchDesk struct {
	b      bazaar.Book
	c      rueidis.DedicatedClient // WATCH is a state of the connection, so each desk has its own
	hangUp func()
}

func openWatch(_ context.Context, addr string) (*house, error) {
	client, err := connect(addr)
	if err != nil {
		return nil, err
	}
	return &house{close: client.Close, desk: func() desk {
		c, hangUp := client.Dedicate()
		return watchDesk{b: bazaar.Book{C: c}, c: c, hangUp: hangUp}
	}}, nil
}

func (d watchDesk) list(ctx context.Context, seller string, o bazaar.Offer) (retries int, err error) {
	_, retries, err = d.optimistic(ctx, []string{bazaar.StoreKey(seller)}, d.b.Listing(seller, o),
		func(ctx context.Context) (bool, error) { return d.b.Has(ctx, seller, o) })
	return retries, err
}

func (d watchDesk) buy(ctx context.Context, buyer string, o bazaar.Offer) (bool, int, error) {
	return d.optimistic(ctx, []string{bazaar.MarketKey, bazaar.FundsKey(buyer)}, d.b.Purchase(buyer, o),
		func(ctx context.Context) (bool, error) { return d.b.CanBuyStepwise(ctx, buyer, o) })
}

// optimistic makes a change if may still says so, until nothing that it watches changes meanwhile or ctx ends. What is
// under way is brought to its end: whoever gave up in the middle would not know what was done.
func (d watchDesk) optimistic(ctx context.Context, watched []string, change rueidis.Commands,
	may func(context.Context) (bool, error),
) (done bool, retries int, err error) {
	through := context.WithoutCancel(ctx)
	for i := range change {
		change[i] = change[i].Pin() // used again and again
	}
	for ; ctx.Err() == nil; retries++ {
		if err := d.c.Do(through, d.c.B().Watch().Key(watched...).Build()).Error(); err != nil {
			return false, retries, err
		}
		ok, err := may(through)
		if err != nil {
			return false, retries, err
		}
		if !ok {
			return false, retries, d.c.Do(through, d.c.B().Unwatch().Build()).Error()
		}
		if done, err := d.b.Exec(through, change); done || err != nil {
			return done, retries, err
		}
	}
	return false, retries, ctx.Err()
}

func (d watchDesk) close() { d.hangUp() }
