package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/rueidis"
)

// The market in Redis, as in the article: who has how much, what is in whose store, and what is for sale at what price.
const marketKey = "market" // a sorted set of "item.seller" by price

func fundsKey(user string) string { return "funds:" + user }
func storeKey(user string) string { return "store:" + user } // a set of items

// offer is an item for sale.
type offer struct {
	item, seller string
	price        int64
}

func (o offer) member() string { return o.item + "." + o.seller }

// book reads and writes the market. Its steps are only correct if nothing changes between them.
type book struct {
	c rueidis.CoreClient
}

// listing returns the commands that offer an item, all or none of which are done.
func (b book) listing(seller string, o offer) rueidis.Commands {
	return rueidis.Commands{
		b.c.B().Multi().Build(),
		b.c.B().Zadd().Key(marketKey).ScoreMember().ScoreMember(float64(o.price), o.member()).Build(),
		b.c.B().Srem().Key(storeKey(seller)).Member(o.item).Build(),
		b.c.B().Exec().Build(),
	}
}

// purchase returns the commands that move the item one way and the money the other.
func (b book) purchase(buyer string, o offer) rueidis.Commands {
	return rueidis.Commands{
		b.c.B().Multi().Build(),
		b.c.B().Incrby().Key(fundsKey(o.seller)).Increment(o.price).Build(),
		b.c.B().Decrby().Key(fundsKey(buyer)).Decrement(o.price).Build(),
		b.c.B().Sadd().Key(storeKey(buyer)).Member(o.item).Build(),
		b.c.B().Zrem().Key(marketKey).Member(o.member()).Build(),
		b.c.B().Exec().Build(),
	}
}

// has reports whether the item is in the seller's store.
func (b book) has(ctx context.Context, seller string, o offer) (bool, error) {
	return b.c.Do(ctx, b.c.B().Sismember().Key(storeKey(seller)).Member(o.item).Build()).AsBool()
}

// canBuy reports whether the offer stands and the buyer has the money.
func (b book) canBuy(ctx context.Context, buyer string, o offer) (bool, error) {
	replies := b.c.DoMulti(ctx,
		b.c.B().Zscore().Key(marketKey).Member(o.member()).Build(),
		b.c.B().Get().Key(fundsKey(buyer)).Build())
	return o.fits(replies[0], replies[1])
}

// canBuyStepwise asks the same one after the other, as the article's buyers do that watch: its client has each command answered at
// once between WATCH and MULTI, and sends several together only under a lock.
func (b book) canBuyStepwise(ctx context.Context, buyer string, o offer) (bool, error) {
	price := b.c.Do(ctx, b.c.B().Zscore().Key(marketKey).Member(o.member()).Build())
	return o.fits(price, b.c.Do(ctx, b.c.B().Get().Key(fundsKey(buyer)).Build()))
}

// fits reports whether the offer stands at its price, and the funds are enough.
func (o offer) fits(price, funds rueidis.RedisResult) (bool, error) {
	asked, err := price.AsFloat64()
	if rueidis.IsRedisNil(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	has, err := funds.AsInt64()
	return err == nil && int64(asked) == o.price && has >= o.price, err
}

// exec runs commands from MULTI to EXEC, and reports whether they were done: a change of what is watched prevents it.
func (b book) exec(ctx context.Context, commands rueidis.Commands) (bool, error) {
	replies := b.c.DoMulti(ctx, commands...)
	for _, r := range replies[:len(replies)-1] {
		if err := r.Error(); err != nil {
			return false, err
		}
	}
	err := replies[len(replies)-1].Error()
	if rueidis.IsRedisNil(err) {
		return false, nil
	}
	return err == nil, err
}

// list offers an item if the seller has it: 2 round trips.
func (b book) list(ctx context.Context, seller string, o offer) (bool, error) {
	if has, err := b.has(ctx, seller, o); !has || err != nil {
		return false, err
	}
	return b.exec(ctx, b.listing(seller, o))
}

// buy buys if the offer stands: 2 round trips.
func (b book) buy(ctx context.Context, buyer string, o offer) (bool, error) {
	if can, err := b.canBuy(ctx, buyer, o); !can || err != nil {
		return false, err
	}
	return b.exec(ctx, b.purchase(buyer, o))
}

// pick returns any offer, or false if there is none: 1 round trip.
func (b book) pick(ctx context.Context) (offer, bool, error) {
	found, err := b.c.Do(ctx, b.c.B().Zrandmember().Key(marketKey).Count(1).Withscores().Build()).AsZScores()
	if err != nil || len(found) == 0 {
		return offer{}, false, err
	}
	o, err := readOffer(found[0].Member, int64(found[0].Score))
	return o, true, err
}

// newItem names an item; its price is in its number, so that it is known what a store has cost.
func newItem(seller string, number int) offer {
	return offer{item: fmt.Sprintf("%s-%d", seller, number), seller: seller, price: priceOf(number)}
}

func priceOf(number int) int64 { return int64(1 + number%97) }

// errGarbled says that something in Redis is not ours.
var errGarbled = errors.New("this is no item of the market")

func readOffer(member string, price int64) (offer, error) {
	item, seller, ok := strings.Cut(member, ".")
	if !ok {
		return offer{}, fmt.Errorf("%w: %q", errGarbled, member)
	}
	return offer{item: item, seller: seller, price: price}, nil
}

// itemPrice is the price of an item, which its name tells.
func itemPrice(item string) (int64, error) {
	_, text, _ := strings.Cut(item, "-")
	number, err := strconv.Atoi(text)
	if err != nil {
		return 0, fmt.Errorf("%w: %q", errGarbled, item)
	}
	return priceOf(number), nil
}
