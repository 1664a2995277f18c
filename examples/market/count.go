package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/interlock-go/interlock/examples/internal/bazaar"
	"github.com/redis/rueidis"
)

// errWrong says that money or items were lost or made.
var errWrong = errors.New("the market is not correct")

// count checks that everything is still there, once: each item in one place, as many in buyers' stores as were bought,
// what each buyer has spent the price of what is in the buyer's store, and all money together what it was.
func (t *traders) count(ctx context.Context, c rueidis.Client) error {
	seen := map[string]string{} // where each item is
	note := func(item, place string) error {
		if other, twice := seen[item]; twice {
			return fmt.Errorf("%w: %s is in %s and in %s", errWrong, item, other, place)
		}
		seen[item] = place
		return nil
	}
	earned, err := t.countSellers(ctx, c, note)
	if err != nil {
		return err
	}
	forSale, err := t.countMarket(ctx, c, note)
	if err != nil {
		return err
	}
	bought, spent, err := t.countBuyers(ctx, c, note)
	switch {
	case err != nil:
		return err
	case len(seen) != t.produced:
		return fmt.Errorf("%w: %d items came into being and %d are there", errWrong, t.produced, len(seen))
	case bought != t.row.bought || forSale != crate*t.crowd.sellers+t.row.listed-t.row.bought:
		return fmt.Errorf("%w: %d listed beside those of the morning and %d bought, "+
			"but %d for sale and %d in the stores of buyers", errWrong, t.row.listed, t.row.bought, forSale, bought)
	case spent != earned:
		return fmt.Errorf("%w: the buyers have spent %d and the sellers earned %d", errWrong, spent, earned)
	}
	return nil
}

func (t *traders) countSellers(
	ctx context.Context, c rueidis.Client, note func(item, place string) error,
) (earned int64, err error) {
	for i := range t.crowd.sellers {
		if _, err := store(ctx, c, sellerName(i), note); err != nil {
			return 0, err
		}
		has, err := c.Do(ctx, c.B().Get().Key(bazaar.FundsKey(sellerName(i))).Build()).AsInt64()
		if err != nil && !rueidis.IsRedisNil(err) { // one who has sold nothing has no key
			return 0, err
		}
		earned += has
	}
	return earned, nil
}

func (t *traders) countBuyers(ctx context.Context, c rueidis.Client, note func(item, place string) error) (
	bought int, spent int64, err error,
) {
	for i := range t.crowd.buyers {
		items, err := store(ctx, c, buyerName(i), note)
		if err != nil {
			return 0, 0, err
		}
		var cost int64
		for _, item := range items {
			price, err := bazaar.ItemPrice(item)
			if err != nil {
				return 0, 0, err
			}
			cost += price
		}
		has, err := c.Do(ctx, c.B().Get().Key(bazaar.FundsKey(buyerName(i))).Build()).AsInt64()
		if err != nil {
			return 0, 0, err
		}
		if purse-has != cost {
			return 0, 0, fmt.Errorf("%w: %s has spent %d for items that cost %d",
				errWrong, buyerName(i), purse-has, cost)
		}
		bought += len(items)
		spent += cost
	}
	return bought, spent, nil
}

func (t *traders) countMarket(ctx context.Context, c rueidis.Client, note func(item, place string) error) (int, error) {
	members, err := c.Do(ctx, c.B().Zrange().Key(bazaar.MarketKey).Min("0").Max("-1").Build()).AsStrSlice()
	if err != nil {
		return 0, err
	}
	for _, member := range members {
		o, err := bazaar.ReadOffer(member, 0)
		if err == nil {
			err = note(o.Item, "the market")
		}
		if err != nil {
			return 0, err
		}
	}
	return len(members), nil
}

// store returns what is in a user's store.
func store(ctx context.Context, c rueidis.Client, user string, note func(item, place string) error) ([]string, error) {
	items, err := c.Do(ctx, c.B().Smembers().Key(bazaar.StoreKey(user)).Build()).AsStrSlice()
	for _, item := range items {
		err = errors.Join(err, note(item, "the store of "+user))
	}
	return items, err
}
