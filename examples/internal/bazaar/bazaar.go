// Package bazaar is a marketplace in Redis: how much money each user has, what is in each store, and what is for sale
// at what price, in the keys of the article that examples/market measures against.
package bazaar

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/rueidis"
)

// MarketKey is the key of what is for sale: a sorted set of "item.seller" by price.
const MarketKey = "market"

// FundsKey is the key of the user's money, a number.
func FundsKey(user string) string { return "funds:" + user }

// StoreKey is the key of what the user has, a set of items.
func StoreKey(user string) string { return "store:" + user }

// Offer is an item for sale.
type Offer struct {
	Item, Seller string
	Price        int64
}

// Member is the offer as it stands in the market.
func (o Offer) Member() string { return o.Item + "." + o.Seller }

// Book reads and writes the market. Its steps are only correct if nothing changes between them: hold a lock around
// them.
type Book struct {
	C rueidis.CoreClient
}

// Listing returns the commands that offer an item, all or none of which are done.
func (b Book) Listing(seller string, o Offer) rueidis.Commands {
	return rueidis.Commands{
		b.C.B().Multi().Build(),
		b.C.B().Zadd().Key(MarketKey).ScoreMember().ScoreMember(float64(o.Price), o.Member()).Build(),
		b.C.B().Srem().Key(StoreKey(seller)).Member(o.Item).Build(),
		b.C.B().Exec().Build(),
	}
}

// Purchase returns the commands that move the item one way and the money the other.
func (b Book) Purchase(buyer string, o Offer) rueidis.Commands {
	return rueidis.Commands{
		b.C.B().Multi().Build(),
		b.C.B().Incrby().Key(FundsKey(o.Seller)).Increment(o.Price).Build(),
		b.C.B().Decrby().Key(FundsKey(buyer)).Decrement(o.Price).Build(),
		b.C.B().Sadd().Key(StoreKey(buyer)).Member(o.Item).Build(),
		b.C.B().Zrem().Key(MarketKey).Member(o.Member()).Build(),
		b.C.B().Exec().Build(),
	}
}

// Has reports whether the item is in the seller's store.
func (b Book) Has(ctx context.Context, seller string, o Offer) (bool, error) {
	return b.C.Do(ctx, b.C.B().Sismember().Key(StoreKey(seller)).Member(o.Item).Build()).AsBool()
}

// CanBuy reports whether the offer stands and the buyer has the money.
func (b Book) CanBuy(ctx context.Context, buyer string, o Offer) (bool, error) {
	replies := b.C.DoMulti(ctx,
		b.C.B().Zscore().Key(MarketKey).Member(o.Member()).Build(),
		b.C.B().Get().Key(FundsKey(buyer)).Build())
	return o.fits(replies[0], replies[1])
}

// CanBuyStepwise asks the same one after the other, as the article's buyers do that watch: its client has each command
// answered at once between WATCH and MULTI, and sends several together only under a lock.
func (b Book) CanBuyStepwise(ctx context.Context, buyer string, o Offer) (bool, error) {
	price := b.C.Do(ctx, b.C.B().Zscore().Key(MarketKey).Member(o.Member()).Build())
	return o.fits(price, b.C.Do(ctx, b.C.B().Get().Key(FundsKey(buyer)).Build()))
}

// fits reports whether the offer stands at its price, and the funds are enough.
func (o Offer) fits(price, funds rueidis.RedisResult) (bool, error) {
	asked, err := price.AsFloat64()
	if rueidis.IsRedisNil(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	has, err := funds.AsInt64()
	return err == nil && int64(asked) == o.Price && has >= o.Price, err
}

// Exec runs commands from MULTI to EXEC, and reports whether they were done: a change of what is watched prevents it.
func (b Book) Exec(ctx context.Context, commands rueidis.Commands) (bool, error) {
	replies := b.C.DoMulti(ctx, commands...)
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

// List offers an item if the seller has it: 2 round trips.
func (b Book) List(ctx context.Context, seller string, o Offer) (bool, error) {
	if has, err := b.Has(ctx, seller, o); !has || err != nil {
		return false, err
	}
	return b.Exec(ctx, b.Listing(seller, o))
}

// Buy buys if the offer stands: 2 round trips.
func (b Book) Buy(ctx context.Context, buyer string, o Offer) (bool, error) {
	if can, err := b.CanBuy(ctx, buyer, o); !can || err != nil {
		return false, err
	}
	return b.Exec(ctx, b.Purchase(buyer, o))
}

// Pick returns any offer, or false if there is none: 1 round trip.
func (b Book) Pick(ctx context.Context) (Offer, bool, error) {
	found, err := b.C.Do(ctx, b.C.B().Zrandmember().Key(MarketKey).Count(1).Withscores().Build()).AsZScores()
	if err != nil || len(found) == 0 {
		return Offer{}, false, err
	}
	o, err := ReadOffer(found[0].Member, int64(found[0].Score))
	return o, true, err
}

// NewItem names an item; its price is in its number, so that it is known what a store has cost.
func NewItem(seller string, number int) Offer {
	return Offer{Item: fmt.Sprintf("%s-%d", seller, number), Seller: seller, Price: priceOf(number)}
}

func priceOf(number int) int64 { return int64(1 + number%97) }

// ErrGarbled says that something in Redis is not ours.
var ErrGarbled = errors.New("this is no item of the market")

// ReadOffer reads an offer as it stands in the market, with its price. It fails with ErrGarbled.
func ReadOffer(member string, price int64) (Offer, error) {
	item, seller, ok := strings.Cut(member, ".")
	if !ok {
		return Offer{}, fmt.Errorf("%w: %q", ErrGarbled, member)
	}
	return Offer{Item: item, Seller: seller, Price: price}, nil
}

// ItemPrice is the price of an item, which its name tells. It fails with ErrGarbled.
func ItemPrice(item string) (int64, error) {
	_, text, _ := strings.Cut(item, "-")
	number, err := strconv.Atoi(text)
	if err != nil {
		return 0, fmt.Errorf("%w: %q", ErrGarbled, item)
	}
	return priceOf(number), nil
}
