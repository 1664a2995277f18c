package main

import (
	"context"
	"crypto/rand"
	"time"

	"github.com/interlock-go/interlock/examples/internal/bazaar"
	"github.com/redis/rueidis"
)

// setnx is the article's lock, for comparison. Its flaws are shown, one by one, elsewhere; the one that is measured
// here is that who waits asks again and again, without a pause: each waiter sends thousands of commands a second.
type setnx struct {
	c rueidis.Client
}

const (
	setnxKey   = "lock:market"
	setnxLease = 20 * time.Second // the article writes 20000 and means milliseconds; EXPIRE takes seconds
)

func openSetnx(_ context.Context, addr string) (*house, error) {
	client, err := connect(addr)
	if err != nil {
		return nil, err
	}
	d := lockedDesk{b: bazaar.Book{C: client}, lock: setnx{client}.lock}
	return &house{desk: func() desk { return d }, close: client.Close}, nil
}

// lock takes the lock, and mends one that was left without an end by a holder that died between its two commands.
func (l setnx) lock(ctx context.Context, _ string) (context.Context, func() error, error) {
	id := rand.Text()
	through := context.WithoutCancel(ctx)
	for ctx.Err() == nil {
		got, err := l.c.Do(through, l.c.B().Setnx().Key(setnxKey).Value(id).Build()).AsBool()
		if err != nil {
			return nil, nil, err
		}
		if !got {
			ttl, err := l.c.Do(through, l.c.B().Ttl().Key(setnxKey).Build()).AsInt64()
			if err != nil {
				return nil, nil, err
			}
			if ttl != -1 {
				continue
			}
		}
		err = l.c.Do(through, l.c.B().Expire().Key(setnxKey).Seconds(int64(setnxLease/time.Second)).Build()).Error()
		if got || err != nil {
			return through, func() error { return l.unlock(through, id) }, err
		}
	}
	return nil, nil, ctx.Err()
}

// unlock deletes the lock if it is still this holder's.
func (l setnx) unlock(ctx context.Context, id string) error {
	return l.c.Dedicated(func(c rueidis.DedicatedClient) error {
		for {
			if err := c.Do(ctx, c.B().Watch().Key(setnxKey).Build()).Error(); err != nil {
				return err
			}
			if who, err := c.Do(ctx, c.B().Get().Key(setnxKey).Build()).ToString(); who != id {
				if err == nil || rueidis.IsRedisNil(err) {
					err = c.Do(ctx, c.B().Unwatch().Build()).Error()
				}
				return err
			}
			done, err := bazaar.Book{C: c}.Exec(ctx, rueidis.Commands{
				c.B().Multi().Build(), c.B().Del().Key(setnxKey).Build(), c.B().Exec().Build(),
			})
			if done || err != nil {
				return err
			}
		}
	})
}
