package drivertest

import (
	"errors"
	"fmt"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// Several locks in one step (driver.MultiAcquirer).

// several returns mutexes of this behaviour that engines with shards keep in one shard, as users ask for that: by a
// {tag} in the name.
func (tr *trial) several() (keys []driver.Key) {
	for _, suffix := range []string{"a", "b", "c", "d"} {
		keys = append(keys, driver.Key{Kind: driver.KindMutex, Name: "{" + tr.name + "}:" + suffix})
	}
	return keys
}

// askAll returns a request for each key.
func (c *client) askAll(keys []driver.Key) (rs []*driver.Request) {
	for _, key := range keys {
		rs = append(rs, c.ask(key))
	}
	return rs
}

// acquireAll asks for all in one step, and gives up after the harness's patience.
func (c *client) acquireAll(rs []*driver.Request) ([]*hold, error) {
	ctx, cancel := c.tr.bound()
	defer cancel()
	gs, err := c.d.(driver.MultiAcquirer).AcquireAll(ctx, rs)
	if err != nil {
		return nil, err
	}
	if len(gs) != len(rs) {
		return nil, fmt.Errorf("%d requests were answered with %d grants", len(rs), len(gs))
	}
	holds := make([]*hold, len(rs))
	for i := range rs {
		holds[i] = &hold{c: c, r: rs[i], g: gs[i], back: time.Now()}
	}
	return holds, nil
}

// takeAll is acquireAll, and fails if it is refused.
func (c *client) takeAll(rs []*driver.Request, when string) []*hold {
	c.tr.Helper()
	holds, err := c.acquireAll(rs)
	if err != nil {
		c.tr.Fatalf("%s: %d free locks must be granted in one step: %v", when, len(rs), err)
	}
	return holds
}

// releaseAll releases each hold.
func releaseAll(holds []*hold) {
	for _, h := range holds {
		h.release()
	}
}

// findsAllFree fails unless each key is free.
func (c *client) findsAllFree(keys []driver.Key, when string) {
	c.tr.Helper()
	for _, key := range keys {
		c.findsFree(key, when)
	}
}

// copiesOf returns the requests once more, as a retry sends them.
func copiesOf(rs []*driver.Request) (again []*driver.Request) {
	for _, r := range rs {
		again = append(again, copyOf(r))
	}
	return again
}

// isRefusedAll fails unless the step is refused because of that lock.
func (c *client) isRefusedAll(keys []driver.Key, because driver.Key, when string) {
	c.tr.Helper()
	holds, err := c.acquireAll(c.askAll(keys))
	if err == nil {
		for _, h := range holds {
			h.abandon()
		}
		c.tr.Fatalf("%s: %d locks were granted in one step, and must be refused", when, len(keys))
	}
	var held *driver.HeldError
	if !errors.As(err, &held) || !driver.IsDefinite(err) || held.Name != because.Name {
		c.tr.Fatalf("%s: it says %q, want a definite *HeldError for %q", when, err, because.Name)
	}
}
