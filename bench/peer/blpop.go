package peer

import (
	"context"
	"strconv"

	"github.com/redis/rueidis"
)

// blpop is the floor of a hand-off: the server itself wakes the first of the waiters. It is no lock to be used: if
// its holder dies, nobody gets it any more.
func blpop() Spec {
	return Spec{
		Name: "blpop",
		Does: "one element of a list, through rueidis with default options: BLPOP takes it, LPUSH puts it back, and " +
			"the server serves the longest waiter; there is no lease and no owner, and a holder that dies takes the " +
			"element with it",
		Redis: true, Sends: []string{"lpush"},
		Open: func(_ context.Context, at Place) (Peer, error) {
			c, err := newRueidis(at)
			if err != nil {
				return nil, err
			}
			return &baton{client: c}, nil
		},
	}
}

// blpopPermits is the floor of a semaphore: as many elements as there are permits.
func blpopPermits() Spec {
	return Spec{
		Name:  "blpop-8",
		Does:  "the same with 8 elements, as permits of a semaphore",
		Redis: true, Shares: Several, Sends: []string{"lpush"},
		Open: func(_ context.Context, at Place) (Peer, error) {
			c, err := newRueidis(at)
			if err != nil {
				return nil, err
			}
			return &baton{client: c, more: Permits - 1}, nil
		},
	}
}

// blpopSeconds bounds one BLPOP, after which another one follows. The bound is the server's and not a context's,
// because with a context that can end rueidis needs two more goroutines for a call, and the floor would be higher.
const blpopSeconds = 5

// seed puts the element into a list, and so many more of them, once.
//
// KEYS[1] is the list, KEYS[2] the key that says that it was done, ARGV[1] how many more. It returns nothing of
// interest.
var seed = rueidis.NewLuaScript(`
if redis.call('SETNX', KEYS[2], '1') == 1 then
	for _ = 0, tonumber(ARGV[1]) do
		redis.call('LPUSH', KEYS[1], 'token')
	end
end
return 1`)

type baton struct {
	client rueidis.Client
	more   int // elements, beside the first
}

// Worker returns a worker on the list, which has its element then.
func (b *baton) Worker(name string) (Worker, error) {
	key := "list:" + name
	keys := []string{key, "seeded:" + name}
	err := seed.Exec(context.Background(), b.client, keys, []string{strconv.Itoa(b.more)}).Error()
	return &batonWorker{client: b.client, key: key}, err
}

// Close closes the client.
func (b *baton) Close() error {
	b.client.Close()
	return nil
}

type batonWorker struct {
	client rueidis.Client
	key    string
}

// Lock takes the element.
func (w *batonWorker) Lock(ctx context.Context) error {
	_, err := pop(ctx, w.client, w.key)
	return err
}

// pop takes an element of a list. It looks at ctx every few seconds.
func pop(ctx context.Context, c rueidis.Client, list string) (rueidis.RedisResult, error) {
	for {
		got := c.Do(context.WithoutCancel(ctx), c.B().Blpop().Key(list).Timeout(blpopSeconds).Build())
		err := got.Error()
		if !rueidis.IsRedisNil(err) {
			return got, err
		}
		if ctx.Err() != nil {
			return got, ctx.Err()
		}
	}
}

// Unlock puts the element back.
func (w *batonWorker) Unlock(ctx context.Context) error {
	return w.client.Do(ctx, w.client.B().Lpush().Key(w.key).Element("token").Build()).Error()
}
