package play

import (
	"context"
	"errors"
	"strconv"

	"github.com/interlock-go/interlock/fence"
	"github.com/interlock-go/interlock/redislock"
	"github.com/redis/rueidis"
)

// resource is a process's way to what the lock protects.
type resource struct {
	client rueidis.Client
	guard  *redislock.Guard
	stamp  fence.Stamp // of the last grant, whatever became of that since
}

// open connects it. A process that stands still for a lease has to find its connection in order afterwards.
func (r *resource) open(addr string) (err error) {
	r.client, err = rueidis.NewClient(rueidis.ClientOption{
		InitAddress: []string{addr}, DisableCache: true, ConnWriteTimeout: patience,
	})
	if err == nil {
		r.guard = redislock.NewGuard(r.client)
	}
	return err
}

// obey carries out one order.
func (r *resource) obey(ctx context.Context, o *order) *report {
	var err error
	done := &report{OK: true}
	switch o.Do {
	case "resource":
		err = r.open(o.URL)
	case "see":
		done.N, done.Fenced, err = r.see(ctx)
	case "sell":
		done.Seen, err = r.sell(ctx, strconv.Itoa(o.N))
	}
	if err != nil {
		return said(err)
	}
	return done
}

// see reads both numbers. The fence is asked at the first touch: it knows the new holder from here on.
func (r *resource) see(ctx context.Context) (plain, fenced int64, err error) {
	plain, err = r.client.Do(ctx, r.client.B().Get().Key(plainKey).Build()).AsInt64()
	if err != nil {
		return 0, 0, err
	}
	value, found, err := r.guard.Get(ctx, fencedKey, r.stamp)
	if err != nil {
		return 0, 0, err
	}
	if !found {
		return 0, 0, errors.New("the number is gone")
	}
	fenced, err = strconv.ParseInt(value, 10, 64)
	return plain, fenced, err
}

// sell writes both numbers, one right after the other. It returns the token that the fence has seen if that refused.
func (r *resource) sell(ctx context.Context, value string) (seen uint64, err error) {
	if err := r.client.Do(ctx, r.client.B().Set().Key(plainKey).Value(value).Build()).Error(); err != nil {
		return 0, err
	}
	err = r.guard.Set(ctx, fencedKey, value, r.stamp)
	var stale *fence.StaleError
	if errors.As(err, &stale) {
		return stale.Seen.Token, nil
	}
	return 0, err
}
