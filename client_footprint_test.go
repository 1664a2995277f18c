package interlock

import (
	"context"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// instantly is an engine that grants everything at once. It keeps only each request's Lost, as every engine has to. So
// what a hold costs on it is the core's share.
type instantly struct{ lost []func(LostReason, error) }

func (d *instantly) Traits() driver.Traits {
	return driver.Traits{Engine: "nothing", Lifetime: driver.Leases, Kinds: []driver.Kind{KindMutex}}
}

func (d *instantly) Acquire(_ context.Context, r *driver.Request) (driver.Grant, error) {
	d.lost = append(d.lost, r.Lost)
	// The nonce is the id, but a string of its own: as if it had come from a server.
	return driver.Grant{Token: 1, Tokens: r.Tokens, Nonce: strings.Clone(r.ID), Sent: time.Now(), Lease: r.Lease}, nil
}

func (d *instantly) Release(context.Context, *driver.Release) error { return nil }

func (d *instantly) Renew(_ context.Context, batch []driver.Renewal, done func(int, error)) {
	for i := range batch {
		done(i, nil)
	}
}

func (d *instantly) Close() error { return nil }

// mostBytes bounds what a held lock may cost the core on a 64-bit machine. It costs about 455 B; the rest is room for
// other versions of Go.
const mostBytes = 490

func TestAHeldLock_IsSmall(t *testing.T) {
	const locks = 10_000
	d := &instantly{lost: make([]func(LostReason, error), 0, locks)}
	c := mustNew(t, d, nil)
	names, leases := make([]string, locks), make([]*Lease, locks)
	for i := range names {
		names[i] = "order:" + strconv.Itoa(i)
	}
	heap, goroutines := heapInUse(), runtime.NumGoroutine()
	for i, name := range names {
		leases[i] = mustLock(t, t.Context(), c, name)
	}
	each := (heapInUse() - heap) / locks
	t.Logf("%d B for each of %d held locks", each, locks)
	if each > mostBytes && strconv.IntSize == 64 {
		t.Errorf("a held lock costs %d B, want at most %d", each, mostBytes)
	}
	if n := settled() - goroutines; n > 1 { // a renewal may be under way
		t.Errorf("%d goroutines more than before", n)
	}
	for _, l := range leases {
		mustUnlock(t, l)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	runtime.KeepAlive(names)
	runtime.KeepAlive(d)
}

// heapInUse returns the bytes in use after two collections. The second frees what the first only took out of pools.
func heapInUse() int {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}
