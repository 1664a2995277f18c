package redislock_test

import (
	"context"
	"errors"
	"flag"
	"math/rand/v2"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/internal/servers"
	_ "github.com/interlock-go/interlock/redislock" // answers to redis:// URLs
)

var faultsSeed = flag.Uint64("faults.seed", 0, "replay the faults with this seed (the schedule is the machine's)")

// faultsPatience bounds everything that must happen at some time.
const faultsPatience = 20 * time.Second

// newRand returns a source of random numbers whose seed is in the log.
func newRand(t testing.TB) *rand.Rand {
	t.Helper()
	seed := *faultsSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 0))
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
	c, err := interlock.Open(patient(t), withQuery(engine, "check", "none"), o)
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

// veryPatient returns a context for who waits while several things are to succeed.
func veryPatient(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 3*faultsPatience)
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

// mustDo sends an operator's command.
func mustDo(t testing.TB, n *servers.RedisNode, args ...string) any {
	t.Helper()
	reply, err := n.Do(patient(t), args...)
	if err != nil {
		t.Fatalf("%v: %v", args, err)
	}
	return reply
}

// soon waits until something is so.
func soon(t testing.TB, what string, is func() bool) {
	t.Helper()
	if !within(faultsPatience, is) {
		t.Fatalf("not after %v: %s", faultsPatience, what)
	}
}

// within reports whether something becomes so in time.
func within(limit time.Duration, is func() bool) bool {
	for end := time.Now().Add(limit); time.Now().Before(end); <-time.After(2 * time.Millisecond) {
		if is() {
			return true
		}
	}
	return is()
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

// waits is an Observer that tells of each wait that the engine has queued, and of renewals and losses.
type waits struct {
	queued  chan string // names; has room for all that a test does
	renewed chan string
	lost    chan *interlock.LostError
}

func newWaits() *waits {
	return &waits{make(chan string, 4096), make(chan string, 1<<16), make(chan *interlock.LostError, 4096)}
}

// renewals returns when each of the holds has been renewed so often from now on.
func (w *waits) renewals(t testing.TB, held []*interlock.Lease, times int) {
	t.Helper()
	for len(w.renewed) > 0 {
		<-w.renewed
	}
	missing := map[string]int{}
	for _, l := range held {
		missing[l.Name()] = times
	}
	for len(missing) > 0 {
		select {
		case name := <-w.renewed:
			if missing[name]--; missing[name] <= 0 {
				delete(missing, name)
			}
		case lost := <-w.lost:
			t.Fatalf("a hold was lost: %v", lost)
		case <-time.After(faultsPatience):
			t.Fatalf("not renewed so often within %v: %v", faultsPatience, missing)
		}
	}
}

func (w *waits) observer() *interlock.Observer {
	return &interlock.Observer{
		Waiting: func(_ context.Context, e interlock.Event) { w.queued <- e.Name },
		Renewed: func(e interlock.Event) {
			select {
			case w.renewed <- e.Name:
			default: // nobody counts that many
			}
		},
		Lost: func(e interlock.Event) {
			var lost *interlock.LostError
			if errors.As(e.Err, &lost) {
				w.lost <- lost
			}
		},
	}
}

// inside sees whether two are inside one lock at once, by what their leases say themselves at one instant, and whether
// tokens grow. It needs no luck: who enters looks at who was in before.
type inside struct {
	t    testing.TB
	name string

	mu      sync.Mutex // guards what follows
	last    *interlock.Lease
	token   uint64
	entries int
	blind   bool // only tokens are compared
}

func newInside(t testing.TB, name string) *inside { return &inside{t: t, name: name} }

// enter notes that l is held. Both leases are asked after l's Lock has returned, so if both may be
// trusted then two are in.
func (w *inside) enter(l *interlock.Lease) {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	other, otherErr := w.last, error(nil)
	if other != nil {
		otherErr = other.Err()
	}
	if l.Err() != nil {
		return // it stood still for too long on its way here
	}
	if other != nil && otherErr == nil && !w.blind {
		w.t.Errorf("%q: tokens %d and %d are both held; the first one's lease ends in %v, the second's in %v",
			w.name, other.Token(), l.Token(), time.Until(other.Deadline()), time.Until(l.Deadline()))
	}
	if l.Token() <= w.token {
		w.t.Errorf("%q: token %d after %d", w.name, l.Token(), w.token)
	}
	w.last, w.token = l, l.Token()
	w.entries++
}

// count returns how many have been inside.
func (w *inside) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.entries
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
