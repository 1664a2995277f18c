package redislock_test

import (
	"context"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/internal/locktest"
	"github.com/interlock-go/interlock/internal/servers"
	_ "github.com/interlock-go/interlock/redislock" // answers to redis:// URLs
)

// faultsPatience bounds everything that must happen at some time.
const faultsPatience = locktest.Patience

// What the tests of faults of several engines have in common.
var (
	newRand    = locktest.Rand
	patient    = locktest.Patient
	mustLock   = locktest.MustLock
	mustUnlock = locktest.MustUnlock
	within     = locktest.Within
	soon       = locktest.Soon
)

// receive waits for a signal.
func receive[T any](t testing.TB, what string, signal <-chan T) T {
	t.Helper()
	return locktest.Receive(t, what, signal)
}

// redisURL is the address of one server, or of the hosts in front of which the scheme says what they are.
func redisURL(scheme string, hosts ...string) string {
	return scheme + "://" + strings.Join(hosts, ",")
}

// sentinelURL names the primary of a Sentinel deployment.
func sentinelURL(s *servers.SentinelRedis) string {
	return redisURL("redis+sentinel", s.Sentinels()...) + "/" + s.Name()
}

// withQuery adds a query key to a URL.
func withQuery(raw, key, value string) string {
	separator := "?"
	if strings.Contains(raw, "?") {
		separator = "&"
	}
	return raw + separator + key + "=" + url.QueryEscape(value)
}

// openLocks opens a client as users do. It is closed with the test.
func openLocks(t testing.TB, engine string, o *interlock.Options) *interlock.Client {
	t.Helper()
	return locktest.Open(t, withQuery(engine, "check", "none"), o)
}

// veryPatient returns a context for who waits while several things are to succeed.
func veryPatient(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 3*faultsPatience)
	t.Cleanup(cancel)
	return ctx
}

// mustDo sends an operator's command.
func mustDo(t testing.TB, n *servers.RedisNode, args ...string) any {
	t.Helper()
	reply, err := n.Do(patient(t), args...)
	if err != nil {
		t.Fatalf("%v: %v", args, err)
	}
	return reply
}

// awaitRenewals returns when each of the holds has been renewed so often from now on.
func awaitRenewals(t testing.TB, w *locktest.News, held []*interlock.Lease, times int) {
	t.Helper()
	for len(w.Renewed) > 0 {
		<-w.Renewed
	}
	missing := map[string]int{}
	for _, l := range held {
		missing[l.Name()] = times
	}
	for len(missing) > 0 {
		select {
		case name := <-w.Renewed:
			if missing[name]--; missing[name] <= 0 {
				delete(missing, name)
			}
		case lost := <-w.Lost:
			t.Fatalf("a hold was lost: %v", lost)
		case <-time.After(faultsPatience):
			t.Fatalf("not renewed so often within %v: %v", faultsPatience, missing)
		}
	}
}

// leftOver returns the keys that should not be there when nobody holds or waits: all but floors, and tombstones
// that have a time to live.
func leftOver(t testing.TB, nodes ...*servers.RedisNode) []string {
	t.Helper()
	var left []string
	for _, n := range nodes {
		keys, _ := mustDo(t, n, "KEYS", "*").([]any)
		for _, k := range keys {
			key := k.(string)
			switch {
			case strings.HasPrefix(key, "interlock:floor:"):
			case strings.HasPrefix(key, "interlock:gone:"):
				if lasts, _ := mustDo(t, n, "PTTL", key).(int64); lasts == -1 {
					left = append(left, key+" for ever")
				}
			default:
				left = append(left, key)
			}
		}
	}
	return left
}

// noneLeft waits until there are none.
func noneLeft(t testing.TB, nodes ...*servers.RedisNode) {
	t.Helper()
	var left []string
	if !within(faultsPatience, func() bool { left = leftOver(t, nodes...); return len(left) == 0 }) {
		t.Errorf("keys are left: %v", left)
		for _, n := range nodes {
			for _, key := range left {
				for _, look := range [][]string{{"GET", key}, {"HGETALL", key}, {"PTTL", key}} {
					said, err := n.Do(patient(t), look...)
					t.Logf("%q: %q %v", look, said, err)
				}
			}
		}
	}
}
