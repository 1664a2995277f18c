package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/interlock-go/interlock/examples/internal/bazaar"
	"github.com/redis/rueidis"
)

// row is what came of one run.
type row struct {
	way   string
	crowd crowd
	took  time.Duration

	listed, bought int
	retries        int           // trades that had to begin again
	gone           int           // purchases of an offer that another had bought since it was picked
	waiting        time.Duration // of all that bought, from picking an offer to having it
}

// meanWait is how long a purchase took.
func (r row) meanWait() time.Duration { return r.waiting / time.Duration(max(r.bought, 1)) }

// perSecond is a number of the row for each second.
func (r row) perSecond(n int) float64 { return float64(n) / r.took.Seconds() }

const (
	// purse is what each buyer begins with: more than can be spent.
	purse = int64(1) << 50

	// crate is how many items a seller puts into the store at once, and has for sale when the day begins. That they
	// come into being is not measured.
	crate = 500

	// emptyPause is how long a buyer looks elsewhere when nothing is for sale.
	emptyPause = 200 * time.Microsecond
)

// day lets a crowd trade on an empty server, and counts everything afterwards.
func (s settings) day(ctx context.Context, addr string, w way, c crowd) (row, error) {
	client, err := connect(addr)
	if err != nil {
		return row{}, err
	}
	defer client.Close()
	if err := open(ctx, client, c); err != nil {
		return row{}, err
	}
	t := &traders{settings: s, way: w, crowd: c, b: bazaar.Book{C: client}, produced: crate * c.sellers}
	if err := t.trade(ctx, addr); err != nil {
		return t.row, err
	}
	if err := ctx.Err(); err != nil {
		return t.row, err
	}
	return t.row, t.count(ctx, client)
}

// open empties the server, gives the buyers their money, and has each seller offer a crate.
func open(ctx context.Context, client rueidis.Client, c crowd) error {
	if err := client.Do(ctx, client.B().Flushdb().Build()).Error(); err != nil {
		return err
	}
	for i := range c.buyers {
		set := client.B().Set().Key(bazaar.FundsKey(buyerName(i))).Value(fmt.Sprint(purse)).Build()
		if err := client.Do(ctx, set).Error(); err != nil {
			return err
		}
	}
	for i := range c.sellers {
		offers := client.B().Zadd().Key(bazaar.MarketKey).ScoreMember()
		for number := range crate {
			o := bazaar.NewItem(sellerName(i), number)
			offers = offers.ScoreMember(float64(o.Price), o.Member())
		}
		if err := client.Do(ctx, offers.Build()).Error(); err != nil {
			return err
		}
	}
	return nil
}

func sellerName(i int) string { return fmt.Sprintf("seller%d", i) }
func buyerName(i int) string  { return fmt.Sprintf("buyer%d", i) }

// traders are the sellers and buyers of a day.
type traders struct {
	settings
	way   way
	crowd crowd
	b     bazaar.Book // for what is not measured

	mu       sync.Mutex // guards what follows
	row      row
	produced int // items that came into being
	houses   []*house
	failed   error
}

// trade lets all of them trade for the duration.
func (t *traders) trade(ctx context.Context, addr string) error {
	defer func() {
		for _, h := range t.houses {
			h.close()
		}
	}()
	desks, err := t.furnish(ctx, addr)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, t.duration)
	defer cancel()
	begin := time.Now()
	var all sync.WaitGroup
	for i, d := range desks {
		all.Go(func() {
			defer d.close()
			var r row
			var err error
			if i < t.crowd.sellers {
				r, err = t.sell(ctx, d, sellerName(i))
			} else {
				r, err = t.buy(ctx, d, buyerName(i-t.crowd.sellers))
			}
			t.add(r, err)
			if err != nil {
				cancel()
			}
		})
	}
	all.Wait()
	t.row.way, t.row.crowd, t.row.took = t.way.name, t.crowd, time.Since(begin)
	return t.failed
}

// furnish opens a desk for each seller and buyer, in one house or in one each.
func (t *traders) furnish(ctx context.Context, addr string) (desks []desk, err error) {
	for i := range t.crowd.sellers + t.crowd.buyers {
		if i == 0 || t.separate {
			h, err := t.way.open(ctx, addr)
			if err != nil {
				return nil, err
			}
			t.houses = append(t.houses, h)
		}
		desks = append(desks, t.houses[len(t.houses)-1].desk())
	}
	return desks, nil
}

func (t *traders) add(r row, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.row.listed += r.listed
	t.row.bought += r.bought
	t.row.retries += r.retries
	t.row.gone += r.gone
	t.row.waiting += r.waiting
	t.failed = errors.Join(t.failed, err)
}

// sell lists one item after the other.
func (t *traders) sell(ctx context.Context, d desk, seller string) (r row, err error) {
	for number := crate; ctx.Err() == nil; number++ {
		if number%crate == 0 {
			if err := t.produce(ctx, seller, number); err != nil {
				return r, err
			}
		}
		retries, err := d.list(ctx, seller, bazaar.NewItem(seller, number))
		r.retries += retries
		if over(ctx, err) {
			return r, nil
		}
		if err != nil {
			return r, err
		}
		r.listed++
	}
	return r, nil
}

// produce puts items into a seller's store.
func (t *traders) produce(ctx context.Context, seller string, from int) error {
	var items []string
	for n := range crate {
		items = append(items, bazaar.NewItem(seller, from+n).Item)
	}
	t.mu.Lock()
	t.produced += crate
	t.mu.Unlock()
	add := t.b.C.B().Sadd().Key(bazaar.StoreKey(seller)).Member(items...).Build()
	return t.b.C.Do(context.WithoutCancel(ctx), add).Error()
}

// buy buys one item after the other, each any that is for sale.
func (t *traders) buy(ctx context.Context, d desk, buyer string) (r row, err error) {
	for ctx.Err() == nil {
		begin := time.Now()
		o, found, err := t.b.Pick(context.WithoutCancel(ctx))
		if err != nil {
			return r, err
		}
		if !found {
			time.Sleep(emptyPause)
			continue
		}
		bought, retries, err := d.buy(ctx, buyer, o)
		r.retries += retries
		switch {
		case over(ctx, err):
			return r, nil
		case err != nil:
			return r, err
		case bought:
			r.bought++
			r.waiting += time.Since(begin)
		default:
			r.gone++
		}
	}
	return r, nil
}

// over reports whether err says only that the day is over.
func over(ctx context.Context, err error) bool {
	return err != nil && ctx.Err() != nil && errors.Is(err, ctx.Err())
}
