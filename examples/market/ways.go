package main

import (
	"context"
	"errors"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/examples/internal/bazaar"
	_ "github.com/interlock-go/interlock/redislock" // opens redis://
	"github.com/redis/rueidis"
)

// way is what keeps the market correct.
type way struct {
	name string
	open func(ctx context.Context, addr string) (*house, error)
}

// house is what sellers and buyers share who are in one process.
type house struct {
	// desk returns what one seller or buyer trades with.
	desk  func() desk
	close func()
}

// desk does what one seller or buyer wants done. retries is how often it had to begin again because of the others.
type desk interface {
	list(ctx context.Context, seller string, o bazaar.Offer) (retries int, err error)
	// buy reports false if the offer was gone.
	buy(ctx context.Context, buyer string, o bazaar.Offer) (bought bool, retries int, err error)
	close()
}

// The names of the ways.
const (
	byWatch   = "WATCH"
	bySetnx   = "SETNX"
	byOneLock = "one lock"
	byItem    = "a lock per item"
)

var ways = []way{{byWatch, openWatch}, {bySetnx, openSetnx}, {byOneLock, openOneLock}, {byItem, openItemLocks}}

func wayNames() (names []string) {
	for _, w := range ways {
		names = append(names, w.name)
	}
	return names
}

func wayOf(name string) way {
	for _, w := range ways {
		if w.name == name {
			return w
		}
	}
	panic("market: no way is called " + name) // names are checked when they come in
}

func connect(addr string) (rueidis.Client, error) {
	return rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{addr}, DisableCache: true})
}

// lockedDesk does each trade under a lock. The lock is waited for until ctx ends; what is under
// way is brought to its end.
type lockedDesk struct {
	b    bazaar.Book
	lock func(ctx context.Context, item string) (work context.Context, unlock func() error, err error)
}

func (d lockedDesk) list(ctx context.Context, seller string, o bazaar.Offer) (int, error) {
	work, unlock, err := d.lock(ctx, o.Item)
	if err != nil {
		return 0, err
	}
	_, err = d.b.List(work, seller, o)
	return 0, errors.Join(err, unlock())
}

func (d lockedDesk) buy(ctx context.Context, buyer string, o bazaar.Offer) (bool, int, error) {
	work, unlock, err := d.lock(ctx, o.Item)
	if err != nil {
		return false, 0, err
	}
	bought, err := d.b.Buy(work, buyer, o)
	return bought, 0, errors.Join(err, unlock())
}

func (lockedDesk) close() {}

// openOneLock has one lock for the whole market.
func openOneLock(ctx context.Context, addr string) (*house, error) {
	return openLocks(ctx, addr, func(string) string { return "market" })
}

// openItemLocks has a lock for each item. It is enough, because a trade touches what nobody else does (the item), what
// is changed by adding only (money of sellers), and the money of a buyer who buys one thing after another. A buyer who
// buys several at once needs a lock of its own around the lock of the item.
func openItemLocks(ctx context.Context, addr string) (*house, error) {
	return openLocks(ctx, addr, func(item string) string { return "item:" + item })
}

func openLocks(ctx context.Context, addr string, name func(item string) string) (*house, error) {
	client, err := connect(addr)
	if err != nil {
		return nil, err
	}
	locks, err := interlock.Open(ctx, "redis://"+addr, nil)
	if err != nil {
		client.Close()
		return nil, err
	}
	lock := func(ctx context.Context, item string) (context.Context, func() error, error) {
		lease, err := locks.Lock(ctx, name(item))
		if err != nil {
			return nil, nil, err
		}
		through := context.WithoutCancel(ctx)
		return lease.Context(through), func() error { return lease.Unlock(through) }, nil
	}
	d := lockedDesk{b: bazaar.Book{C: client}, lock: lock}
	return &house{desk: func() desk { return d }, close: func() { _ = locks.Close(); client.Close() }}, nil
}
