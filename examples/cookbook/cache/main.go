// Cache loads a value once when twenty requests miss it at the same moment on four hosts:
//
//	go run ./cookbook/cache
//
// The first request loads it under a lock; the others wait, look again, and find it. If the engine cannot be reached
// they load by themselves: that is slow, and not wrong.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/examples/internal/recipe"
)

const perHost = 5

// cache stands for the one that all hosts share.
type cache struct {
	values sync.Map
	loads  atomic.Int32
	missed sync.WaitGroup // done by each request that has missed
}

func (c *cache) load(key string) string {
	c.loads.Add(1)
	value := "value of " + key // by an expensive query
	c.values.Store(key, value)
	return value
}

// get returns the value of key.
func (c *cache) get(ctx context.Context, locks *interlock.Client, key string) (value string, err error) {
	if v, ok := c.values.Load(key); ok {
		return v.(string), nil
	}
	// All requests miss before the first one loads: the stampede of this program, and nothing that yours needs.
	c.missed.Done()
	c.missed.Wait()

	err = locks.Do(ctx, "cache:"+key, func(context.Context) error {
		if v, ok := c.values.Load(key); ok {
			value = v.(string) // another request has loaded it while this one waited
			return nil
		}
		value = c.load(key)
		return nil
	})
	if value == "" && ctx.Err() == nil && errors.Is(err, interlock.ErrUnavailable) {
		return c.load(key), nil
	}
	if errors.Is(err, interlock.ErrLost) && value != "" {
		return value, nil // another may have loaded it too; both values are good
	}
	return value, err
}

func main() { recipe.Main(run) }

func run(ctx context.Context, url string, out io.Writer) error {
	fleet, err := recipe.Open(ctx, url, "host-1", "host-2", "host-3", "host-4")
	if err != nil {
		return err
	}
	defer fleet.Close()
	var requests recipe.Fleet // several on each host
	for range perHost {
		requests = append(requests, fleet...)
	}
	var c cache
	c.missed.Add(len(requests))
	err = requests.Each(ctx, func(ctx context.Context, h recipe.Host) error {
		value, err := c.get(ctx, h.Locks, "prices")
		if err == nil && value != "value of prices" {
			err = fmt.Errorf("got %q", value)
		}
		return err
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%d requests, %d load\n", len(requests), c.loads.Load())
	if n := c.loads.Load(); n != 1 {
		return fmt.Errorf("%d loads, want 1", n)
	}
	return nil
}
