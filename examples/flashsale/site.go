package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/examples/internal/host"
	_ "github.com/interlock-go/interlock/redislock" // opens redis://
	"github.com/redis/rueidis"
)

// site says where a sale takes place.
type site struct {
	Item    string
	Redis   string // host:port
	MariaDB string // host:port
	NATS    string // URL, or "" for the stream in Redis

	// Again is how long an order is left to the consumer to which it was delivered, before it is delivered to another.
	Again time.Duration

	// OneWire has all commands go over one connection, for tests that lose what comes over it: else rueidis opens more
	// whenever it likes, and one that is opened then stays mute.
	OneWire bool
}

// office is a site that was opened by one component.
type office struct {
	site
	stock  *stock
	ledger *ledger
	queue  queue
	locks  *interlock.Client

	redis rueidis.Client
}

// open connects one component. consumer is its name in the queue.
func (s site) open(ctx context.Context, consumer string) (o *office, err error) {
	o = &office{site: s}
	defer func() {
		if err != nil {
			o.close()
		}
	}()
	option := rueidis.ClientOption{InitAddress: []string{s.Redis}, DisableCache: true}
	if s.OneWire {
		option.PipelineMultiplex = -1
	}
	if o.redis, err = rueidis.NewClient(option); err != nil {
		return o, fmt.Errorf("redis: %w", err)
	}
	o.stock = &stock{c: o.redis, item: s.Item}
	db, err := sql.Open(host.SQL(host.MariaDB, s.MariaDB))
	if err != nil {
		return o, err
	}
	o.ledger = &ledger{db: db, item: s.Item}
	if err := db.PingContext(ctx); err != nil {
		return o, fmt.Errorf("mariadb: %w", err)
	}
	if o.locks, err = interlock.Open(ctx, host.LockURL(host.Redis, s.Redis), nil); err != nil {
		return o, err
	}
	o.queue, err = s.openQueue(ctx, o.stock, consumer)
	return o, err
}

func (s site) openQueue(ctx context.Context, from *stock, consumer string) (queue, error) {
	if s.NATS != "" {
		q, err := openNATS(ctx, s.NATS, s.Item, s.Again)
		if err != nil {
			return nil, fmt.Errorf("nats: %w", err)
		}
		return q, nil
	}
	q, err := openStream(ctx, from, consumer, s.Again)
	if err != nil {
		return nil, fmt.Errorf("redis: %w", err)
	}
	return q, nil
}

// load opens the sale in the database and then in Redis. The lock keeps two who begin at once from meeting half of it.
func (o *office) load(ctx context.Context, s sale) error {
	if err := s.check(); err != nil {
		return err
	}
	return o.locks.Do(ctx, "load:"+o.Item, func(ctx context.Context) error {
		if err := o.ledger.create(ctx); err != nil {
			return err
		}
		return errors.Join(o.ledger.load(ctx, s), o.stock.load(ctx, s))
	})
}

func (o *office) close() {
	if o.queue != nil {
		o.queue.close()
	}
	if o.locks != nil {
		_ = o.locks.Close() // what it could not release runs out
	}
	if o.ledger != nil {
		_ = o.ledger.db.Close() // nothing is under way
	}
	if o.redis != nil {
		o.redis.Close()
	}
}
