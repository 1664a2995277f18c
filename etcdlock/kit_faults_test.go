package etcdlock_test

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
	_ "github.com/interlock-go/interlock/etcdlock" // answers to etcd:// URLs
	"github.com/interlock-go/interlock/internal/locktest"
	"github.com/interlock-go/interlock/internal/servers"
)

const (
	// faultsPatience bounds everything that must happen at some time.
	faultsPatience = locktest.Patience

	// brief is a session's timeout that is waited for, which is longer than a busy machine lets a process stand still,
	// with the third after which a sign of life is given, and calm one that is not to end.
	brief, calm = 3 * time.Second, 20 * time.Second
)

// etcdURL is the address of some servers.
func etcdURL(hosts ...string) string { return "etcd://" + strings.Join(hosts, ",") }

// What the tests of faults of several engines have in common.
var (
	patient    = locktest.Patient
	mustLock   = locktest.MustLock
	mustUnlock = locktest.MustUnlock
	openLocks  = locktest.Open
	within     = locktest.Within
	newNews    = locktest.NewNews
	alarm      = locktest.Alarm
)

// receive waits for a signal.
func receive[T any](t testing.TB, what string, signal <-chan T) T {
	t.Helper()
	return locktest.Receive(t, what, signal)
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
