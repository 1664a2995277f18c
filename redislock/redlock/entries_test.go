package redlock

import (
	"context"
	"crypto/rand"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/servers"
	"github.com/interlock-go/interlock/redislock"
)

// pairs is how many locks are taken and given back while one node of three is away.
const pairs = 200

func TestNodeThatIsAway_CostsNoMemoryForEachLock(t *testing.T) {
	for name, away := range map[string]struct{ begin, end func(n *servers.RedisNode) }{
		"it refuses connections": {(*servers.RedisNode).Kill, (*servers.RedisNode).Restart},
		"it hangs":               {(*servers.RedisNode).Stop, (*servers.RedisNode).Cont},
	} {
		t.Run(name, func(t *testing.T) {
			nodes := startNodes(t, fewest)
			d := openOn(t, "", nodes)
			away.begin(nodes[1])
			for range pairs {
				takeAndGive(t, d)
			}
			soon(t, "what a node that is away is still to be told is bounded", func() bool {
				return claims(d) <= mostOwed+1
			})
			if name == "it refuses connections" { // else what it owes is still under way
				soon(t, "no node keeps anything", func() bool { return entriesOf(d) == 0 })
			}
			away.end(nodes[1])
			soon(t, "nothing is left when it is back", func() bool { return claims(d) == 0 && entriesOf(d) == 0 })
		})
	}
}

// openOn returns a driver over those nodes, without anything in between, as that user if it is not empty. It
// is closed with the test.
func openOn(t *testing.T, user string, nodes []*servers.RedisNode) *Driver {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	url := fmt.Sprintf("redlock://%s%s?check=none&node-timeout=%v", user, strings.Join(addrs(nodes), ","), shortTimeout)
	opened, err := driver.DefaultMux.Open(ctx, url, driver.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = opened.Close() })
	d := opened.(*Driver)
	soon(t, "all nodes are connected", func() bool {
		return d.nodes[0].driver() != nil && d.nodes[1].driver() != nil && d.nodes[2].driver() != nil
	})
	return d
}

// takeAndGive takes a lock of its own and gives it back. A node that died in the middle of it
// may leave the outcome open.
func takeAndGive(t *testing.T, d *Driver) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	r := &driver.Request{
		Key: driver.Key{Kind: driver.KindMutex, Name: rand.Text()}, ID: rand.Text(), Owner: "o", Client: "c", Weight: 1,
		Tokens: 1,
		Lease:  time.Second,
	}
	if _, err := d.Acquire(ctx, r); err != nil {
		t.Fatalf("acquire: %v", err)
	}
	if err := d.Release(ctx, &driver.Release{Key: r.Key, ID: r.ID, Horizon: r.Lease}); err != nil {
		t.Fatalf("release: %v", err)
	}
}

func soon(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); <-time.After(2 * time.Millisecond) {
		if is() {
			return
		}
	}
	t.Fatalf("not after %v: %s", patience, what)
}

// claims is how many requests d knows.
func claims(d *Driver) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.current)
}

// entriesOf is how many requests the drivers of the nodes know.
func entriesOf(d *Driver) (n int) {
	for _, node := range d.nodes {
		n += entries(node.driver())
	}
	return n
}

// entries looks into a driver of another package, under its mutex.
func entries(d *redislock.Driver) int {
	v := reflect.ValueOf(d).Elem()
	mu := (*sync.Mutex)(unsafe.Pointer(v.FieldByName("mu").UnsafeAddr()))
	mu.Lock()
	defer mu.Unlock()
	return v.FieldByName("entries").Len()
}
