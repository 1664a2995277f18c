package redislock_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/drivertest"
	"github.com/interlock-go/interlock/internal/locktest"
	"github.com/interlock-go/interlock/internal/pace"
	"github.com/interlock-go/interlock/internal/servers"
)

func TestCluster_Faults(t *testing.T) {
	if drivertest.Apart(t) {
		return
	}
	c := servers.RedisCluster(t, 3, 1, &servers.RedisOptions{
		// Without the first no slot is served while one has no owner. By the second no replica takes over because the
		// machine stands still for a second.
		Config: map[string]string{"cluster-require-full-coverage": "no", "cluster-node-timeout": "3000"},
	})
	t.Run("Close_LeavesNothing", func(t *testing.T) { leavesNothing(t, clusterURL(c), c.Nodes(), primaries(c)...) })
	t.Run("ASlotThatMovesUnderAContendedLock_LosesNobody", func(t *testing.T) { slotMoves(t, c) })
	t.Run("ASlotThatTakesLongToMove_KeepsItsHolders", func(t *testing.T) { slotMovesSlowly(t, c) })
	t.Run("ANodeThatDies_IsReplacedAndOtherSlotsDoNotNotice", func(t *testing.T) { nodeDies(t, c) })
}

func clusterURL(c *servers.ClusterRedis) string { return redisURL("redis+cluster", c.Addrs()...) }

// lockSlot is the slot of a mutex.
func lockSlot(c *servers.ClusterRedis, name string) int { return c.Slot("interlock:mutex:" + name) }

// elsewhere returns another primary than the owner of the slot.
func elsewhere(c *servers.ClusterRedis, slot int) *servers.RedisNode {
	owner := c.Owner(slot)
	for n := 0; ; n += 1000 {
		if other := c.Owner((slot + n) % 16384); other != owner {
			return other
		}
	}
}

// traffic takes locks again and again until it is stopped.
type traffic struct {
	clock   *pace.Clock
	stop    context.CancelFunc
	all     sync.WaitGroup
	mu      sync.Mutex // guards what follows
	longest time.Duration
	failed  []error
}

// startTraffic has each client take each lock in turn, and takes the time by the clock.
func startTraffic(clock *pace.Clock, clients []*interlock.Client, locks ...*locktest.Inside) *traffic {
	ctx, stop := context.WithCancel(context.Background())
	f := &traffic{clock: clock, stop: stop}
	for _, c := range clients {
		for _, w := range locks {
			f.all.Go(func() { // ends with ctx
				for ctx.Err() == nil {
					f.once(ctx, c, w)
				}
			})
		}
	}
	return f
}

func (f *traffic) once(ctx context.Context, c *interlock.Client, w *locktest.Inside) {
	begin := f.clock.Now()
	l, err := c.Lock(ctx, w.Name)
	if err == nil {
		w.Enter(l)
		err = l.Unlock(context.WithoutCancel(ctx))
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.longest = max(f.longest, f.clock.Now()-begin)
	if err != nil && ctx.Err() == nil {
		f.failed = append(f.failed, err)
	}
}

// end stops it and returns how long the longest turn took, and what failed.
func (f *traffic) end() (time.Duration, []error) {
	f.stop()
	f.all.Wait()
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.longest, f.failed
}

// moreIn waits until more have been in.
func moreIn(t testing.TB, w *locktest.Inside, more int) {
	t.Helper()
	before := w.Entries()
	soon(t, fmt.Sprintf("%d more to get into %q", more, w.Name), func() bool { return w.Entries() >= before+more })
}

func slotMoves(t *testing.T, c *servers.ClusterRedis) {
	w := locktest.NewInside(t, "moving")
	slot := lockSlot(c, w.Name)
	still := locktest.NewInside(t, "staying")
	clients := several(t, 5, clusterURL(c), &interlock.Options{LocalHandoffs: -1})
	f := startTraffic(pace.Process(), clients, w, still)
	moreIn(t, w, 20)
	for range 3 {
		m := c.Migrate(slot, elsewhere(c, slot))
		m.MoveKeys()
		m.Finish()
		begin := time.Now()
		moreIn(t, w, 20)
		t.Logf("20 got in %v after the slot had moved", time.Since(begin))
	}
	longest, failed := f.end()
	t.Logf("%d times somebody was in; the longest turn took %v", w.Entries(), longest)
	if len(failed) > 0 {
		t.Errorf("%d turns failed, the first: %v", len(failed), failed[0])
	}
	c.AwaitReady()
	noneLeft(t, primaries(c)...)
}

// primaries are the owners of the slots.
func primaries(c *servers.ClusterRedis) (all []*servers.RedisNode) {
	seen := map[*servers.RedisNode]bool{}
	for slot := 0; slot < 16384; slot += 1000 {
		if n := c.Owner(slot); !seen[n] {
			seen[n] = true
			all = append(all, n)
		}
	}
	return all
}

// Half of a slot's locks are here and half there for long: all are renewed again and again, and who waits gets in at
// last. What takes more than one key, acquisitions and releases, has to wait (the servers answer TRYAGAIN).
func slotMovesSlowly(t *testing.T, c *servers.ClusterRedis) {
	watch, waiting := locktest.NewNews(), locktest.NewNews()
	o := &interlock.Options{Lease: faultsPatience, Renewal: 200 * time.Millisecond, Observer: watch.Observer()}
	client := openLocks(t, clusterURL(c), o)
	other := openLocks(t, clusterURL(c), &interlock.Options{Observer: waiting.Observer()})
	var held []*interlock.Lease
	for i := range 10 {
		held = append(held, mustLock(t, client, fmt.Sprintf("{slow} %d", i)))
	}
	in := make(chan *interlock.Lease, 2)
	for _, l := range []*interlock.Lease{held[0], held[9]} { // of one that moves early and of one that moves late
		go func() {
			next, err := other.Lock(veryPatient(t), l.Name())
			if err != nil {
				t.Errorf("a waiter: %v", err)
			} else if l.Err() == nil || next.Token() <= l.Token() {
				t.Errorf("token %d is in after %d, of which Err is %v", next.Token(), l.Token(), l.Err())
			}
			in <- next
		}()
		receive(t, "the waiter to be queued", waiting.Queued)
	}
	slot := lockSlot(c, held[0].Name())
	m := c.Migrate(slot, elsewhere(c, slot))
	host, port, err := net.SplitHostPort(m.To.Addr())
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range held[:5] {
		mustDo(t, m.From, "MIGRATE", host, port, "interlock:mutex:"+l.Name(), "0", "1000")
	}
	half := time.Now()
	_, err = other.TryLock(patient(t), "{slow} new")
	t.Logf("a try meanwhile took %v: %v", time.Since(half), err)
	if errors.Is(err, interlock.ErrHeld) {
		t.Errorf("a try meanwhile says %v", err)
	}
	awaitRenewals(t, watch, held, 5)
	t.Logf("all were renewed five times within %v", time.Since(half))
	unlocked := make(chan error, len(held))
	for _, l := range held { // meanwhile too
		go func() { unlocked <- l.Unlock(patient(t)) }()
	}
	m.MoveKeys()
	m.Finish()
	begin := time.Now()
	for range held {
		if err := receive(t, "a release to be confirmed", unlocked); err != nil {
			t.Errorf("Unlock: %v", err)
		}
	}
	t.Logf("the releases were confirmed %v after the slot had moved", time.Since(begin))
	for range 2 {
		if l := receive(t, "a waiter to get in", in); l != nil {
			mustUnlock(t, l)
		}
	}
	t.Logf("who waited was in %v after the slot had moved", time.Since(begin))
	noneLeft(t, primaries(c)...)
}

func nodeDies(t *testing.T, c *servers.ClusterRedis) {
	c.AwaitReady()
	watch := locktest.NewNews()
	o := &interlock.Options{Lease: failoverLease, Renewal: time.Second, LocalHandoffs: -1, Observer: watch.Observer()}
	client, other := openLocks(t, clusterURL(c), o), openLocks(t, clusterURL(c), o)
	w := locktest.NewInside(t, "dying")
	slot := lockSlot(c, w.Name)
	apart := locktest.NewInside(t, apartFrom(c, slot))
	held := mustLock(t, client, w.Name)
	w.Enter(held)
	in := make(chan *interlock.Lease, 1)
	go func() {
		l, err := other.Lock(veryPatient(t), w.Name)
		if err != nil {
			t.Errorf("the waiter: %v", err)
		} else {
			w.Enter(l)
		}
		in <- l
	}()
	receive(t, "the waiter to be queued", watch.Queued)
	c.AwaitReady() // the replica has it all
	f := startTraffic(pace.Of(t, c.Owner(lockSlot(c, apart.Name))), []*interlock.Client{client, other}, apart)
	moreIn(t, apart, 10)
	begin := time.Now()
	old := c.KillOwner(slot)
	dead := time.Now()
	c.AwaitFailover(slot, old)
	t.Logf("a replica was in office after %v", time.Since(begin))
	soon(t, "the hold to be renewed at the new primary", func() bool {
		return held.Err() != nil ||
			time.Until(held.Deadline()) > failoverLease-2*time.Second && time.Since(dead) > 2*time.Second
	})
	if err := held.Err(); err != nil {
		t.Errorf("the hold was lost: %v", err)
	}
	longest, failed := f.end()
	t.Logf("in other slots the longest turn took %v", longest)
	if len(failed) > 0 || longest > time.Second {
		t.Errorf("in other slots %d turns failed, and the longest took %v: %v",
			len(failed), longest, errors.Join(failed...))
	}
	begin = time.Now()
	if err := held.Unlock(patient(t)); err != nil {
		t.Errorf("Unlock: %v", err)
	}
	if l := receive(t, "the waiter to get in", in); l != nil {
		t.Logf("the waiter was in %v after the unlock", time.Since(begin))
		mustUnlock(t, l)
	}
	c.RestartDead()
	noneLeft(t, primaries(c)...)
}

// apartFrom returns the name of a lock on another node than the slot's.
func apartFrom(c *servers.ClusterRedis, slot int) string {
	owner := c.Owner(slot)
	for i := 0; ; i++ {
		if name := fmt.Sprint("apart ", i); c.Owner(lockSlot(c, name)) != owner {
			return name
		}
	}
}
