package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/interlock-go/interlock/examples/internal/bazaar"
	"github.com/redis/rueidis"
)

const (
	goods     = 500 // items that there are
	purse     = int64(1) << 40
	warehouse = "warehouse" // who offers all of them at first
)

// errWrong says that goods or money were lost or made.
var errWrong = errors.New("the market is not correct")

// stock gives the customers their money, and offers the goods.
func stock(ctx context.Context, c rueidis.Client, customers []string) error {
	for _, name := range customers {
		funds := c.B().Set().Key(bazaar.FundsKey(name)).Value(fmt.Sprint(purse)).Build()
		if err := c.Do(ctx, funds).Error(); err != nil {
			return err
		}
	}
	offers := c.B().Zadd().Key(bazaar.MarketKey).ScoreMember()
	for number := range goods {
		o := bazaar.NewItem(warehouse, number)
		offers = offers.ScoreMember(float64(o.Price), o.Member())
	}
	return c.Do(ctx, offers.Build()).Error()
}

// countAll checks that each of the goods is in one place, and that all money together is what it was. Hold the market's
// lock meanwhile.
func countAll(ctx context.Context, c rueidis.Client, customers []string) error {
	members, err := c.Do(ctx, c.B().Zrange().Key(bazaar.MarketKey).Min("0").Max("-1").Build()).AsStrSlice()
	if err != nil {
		return err
	}
	items, money := map[string]int{}, int64(0)
	for _, member := range members {
		o, err := bazaar.ReadOffer(member, 0)
		if err != nil {
			return err
		}
		items[o.Item]++
	}
	for _, name := range append([]string{warehouse}, customers...) {
		has, err := c.Do(ctx, c.B().Smembers().Key(bazaar.StoreKey(name)).Build()).AsStrSlice()
		if err != nil {
			return err
		}
		for _, item := range has {
			items[item]++
		}
		funds, err := c.Do(ctx, c.B().Get().Key(bazaar.FundsKey(name)).Build()).AsInt64()
		if err != nil && !rueidis.IsRedisNil(err) { // the warehouse has no key before it has sold anything
			return err
		}
		money += funds
	}
	for item, places := range items {
		if places != 1 {
			return fmt.Errorf("%w: %s is in %d places", errWrong, item, places)
		}
	}
	if len(items) != goods || money != purse*int64(len(customers)) {
		return fmt.Errorf("%w: %d of %d items, and money of %d instead of %d", errWrong, len(items), goods, money,
			purse*int64(len(customers)))
	}
	return nil
}
