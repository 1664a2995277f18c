package etcdlock_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
	_ "github.com/interlock-go/interlock/etcdlock" // answers to etcd:// URLs
	"github.com/interlock-go/interlock/internal/servers"
)

const (
	// faultsPatience bounds everything that must happen at some time.
	faultsPatience = 30 * time.Second

	// brief is a session's timeout that is waited for, which is longer than a busy machine lets a process stand still,
	// with the third after which a sign of life is given, and calm one that is not to end.
	brief, calm = 3 * time.Second, 20 * time.Second
)

// etcdURL is the address of some servers.
func etcdURL(hosts ...string) string { return "etcd://" + strings.Join(hosts, ",") }

// openLocks opens a client as users do. It is closed with the test.
func openLocks(t testing.TB, url string, o *interlock.Options) *interlock.Client {
	t.Helper()
	c, err := interlock.Open(patient(t), url, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() }) // what was not confirmed is the test's own business
	return c
}

// patient returns a context for what is to succeed.
func patient(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), faultsPatience)
	t.Cleanup(cancel)
	return ctx
}

// mustLock locks.
func mustLock(t testing.TB, c *interlock.Client, name string) *interlock.Lease {
	t.Helper()
	l, err := c.Lock(patient(t), name)
	if err != nil {
		t.Fatalf("Lock %q: %v", name, err)
	}
	return l
}

// mustUnlock unlocks.
func mustUnlock(t testing.TB, l *interlock.Lease) {
	t.Helper()
	if err := l.Unlock(patient(t)); err != nil {
		t.Fatalf("Unlock %q: %v", l.Name(), err)
	}
}

// locking locks in the background. The lease, or nil after an error, comes from the channel.
func locking(t testing.TB, c *interlock.Client, name string) <-chan *interlock.Lease {
	in := make(chan *interlock.Lease, 1)
	ctx := patient(t)
	go func() { // ends with the wait
		l, err := c.Lock(ctx, name)
		if err != nil {
			t.Errorf("Lock %q: %v", name, err)
		}
		in <- l
	}()
	return in
}

// receive waits for a signal.
func receive[T any](t testing.TB, what string, signal <-chan T) T {
	t.Helper()
	select {
	case v := <-signal:
		return v
	case <-time.After(faultsPatience):
		t.Fatalf("not after %v: %s", faultsPatience, what)
		panic("not reached")
	}
}

// alarm tells when d is over. If the machine stands still it is late as well, so what has to come by then is measured
// against it.
func alarm(d time.Duration) <-chan time.Time {
	over := make(chan time.Time, 1)
	time.AfterFunc(d, func() { over <- time.Now() })
	return over
}

// within reports whether something becomes so in time.
func within(limit time.Duration, is func() bool) bool {
	for end := time.Now().Add(limit); time.Now().Before(end); <-time.After(5 * time.Millisecond) {
		if is() {
			return true
		}
	}
	return is()
}

// waits is an Observer that tells of each wait that the engine has queued.
type waits struct {
	queued chan string // names; has room for all that a test does
	lost   chan *interlock.LostError
}

func newWaits() *waits { return &waits{make(chan string, 1024), make(chan *interlock.LostError, 1024)} }

func (w *waits) observer() *interlock.Observer {
	return &interlock.Observer{
		Waiting: func(_ context.Context, e interlock.Event) { w.queued <- e.Name },
		Lost: func(e interlock.Event) {
			var lost *interlock.LostError
			if errors.As(e.Err, &lost) {
				w.lost <- lost
			}
		},
	}
}

// do sends an operator's request.
func do(t testing.TB, n *servers.EtcdNode, path string, body map[string]any) map[string]any {
	t.Helper()
	answer, err := n.Do(patient(t), path, body)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return answer
}

func b64(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }

// keys returns the keys that begin with the prefix.
func keys(t testing.TB, n *servers.EtcdNode, prefix string) (all []string) {
	t.Helper()
	end := prefix[:len(prefix)-1] + string(rune(prefix[len(prefix)-1]+1))
	found := do(t, n, "kv/range", map[string]any{"key": b64(prefix), "range_end": b64(end), "keys_only": true})
	list, _ := found["kvs"].([]any)
	for _, kv := range list {
		key, _ := base64.StdEncoding.DecodeString(fmt.Sprint(kv.(map[string]any)["key"]))
		all = append(all, string(key))
	}
	return all
}

// noneLeft waits until there are no queue keys any more, neither of holds nor of waits.
func noneLeft(t testing.TB, n *servers.EtcdNode) {
	t.Helper()
	var left []string
	if !within(faultsPatience, func() bool { left = keys(t, n, "interlock/mutex/"); return len(left) == 0 }) {
		t.Errorf("keys are left: %v", left)
	}
}

// sessions returns the leases of the keys that begin with the prefix, in the order in which these were created.
func sessions(t testing.TB, n *servers.EtcdNode, prefix string) (all []any) {
	t.Helper()
	end := prefix[:len(prefix)-1] + string(rune(prefix[len(prefix)-1]+1))
	found := do(t, n, "kv/range", map[string]any{
		"key": b64(prefix), "range_end": b64(end), "sort_target": "CREATE", "sort_order": "ASCEND",
	})
	list, _ := found["kvs"].([]any)
	for _, kv := range list {
		all = append(all, kv.(map[string]any)["lease"])
	}
	return all
}
