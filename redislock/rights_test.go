package redislock

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/servers"
	"github.com/interlock-go/interlock/redislock/conn"
	"github.com/interlock-go/interlock/redislock/internal/rueidisconn"
	"github.com/redis/rueidis"
)

// rightsInDoc returns the rules behind "ACL SETUSER NAME" in the package documentation, in the line with that comment.
func rightsInDoc(t *testing.T, comment string) []string {
	t.Helper()
	text, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`(?m)^//\s+ACL SETUSER \w+ (.*?)\s+# ` + comment + `$`).FindSubmatch(text)
	if found == nil {
		t.Fatalf("doc.go has no ACL SETUSER for %s", comment)
	}
	return strings.Fields(string(found[1]))
}

// userRights are those in the documentation's lines with the comments.
func userRights(t *testing.T, comments ...string) []string {
	t.Helper()
	var rights []string
	for _, comment := range comments {
		for _, right := range rightsInDoc(t, comment) {
			if !slices.Contains(rights, right) && right != "on" && right != ">PASSWORD" {
				rights = append(rights, right)
			}
		}
	}
	return rights
}

// asUser gives bob the rights on each server, which it empties, and returns a function that opens a driver as bob.
func asUser(
	t *testing.T, option rueidis.ClientOption, opts *Options, nodes []*servers.RedisNode, rights []string,
) func() (*Driver, error) {
	t.Helper()
	for _, n := range nodes {
		for _, command := range [][]string{
			append([]string{"ACL", "SETUSER", "bob", "reset", "on", ">hunter2"}, rights...),
			{"FLUSHALL"}, // a replica refuses
			{"SCRIPT", "FLUSH"},
		} {
			if _, err := n.Do(t.Context(), command...); err != nil && !strings.HasPrefix(err.Error(), "READONLY") {
				t.Fatalf("%v: %v", command, err)
			}
		}
	}
	option.Username, option.Password, option.DisableCache = "bob", "hunter2", true
	return func() (*Driver, error) {
		client, err := rueidis.NewClient(option)
		if err != nil {
			return nil, err
		}
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		return start(ctx, &overhearing{rueidisconn.New(client, true), make(chan struct{}, 1)}, opts)
	}
}

// locking uses everything that needs the server, and returns the first error. A wait must be ended by a push.
func locking(ctx context.Context, begin func() (*Driver, error)) error {
	a, err := begin()
	if err != nil {
		return err
	}
	defer a.Close()
	b, err := begin()
	if err != nil {
		return err
	}
	defer b.Close()
	for _, step := range []func(ctx context.Context, a, b *Driver) error{
		lockAlone, lockTogether, lockContended, lockTwice, lockAndRequeue, lockAndBreak, waitForSignals,
		share, watchAndBeAlive,
	} {
		ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		err := step(ctx, a, b)
		cancel()
		if err != nil {
			return err
		}
	}
	return nil
}

func lockRequest(id, name string) *driver.Request {
	return &driver.Request{
		Key: driver.Key{Kind: driver.KindMutex, Name: name}, ID: id, Owner: "o-" + id, Client: "test",
		Lease: 20 * time.Second, Tokens: 1,
	}
}

func lockAlone(ctx context.Context, a, b *Driver) error {
	r := lockRequest("alone", "x")
	if _, err := a.Acquire(ctx, r); err != nil {
		return err
	}
	try := lockRequest("try", "x")
	try.Try = true
	if _, err := b.Acquire(ctx, try); !errors.Is(err, driver.ErrHeld) {
		return fmt.Errorf("a try: %w", err)
	}
	if err := lengthen(ctx, a, r, time.Minute); err != nil {
		return err
	}
	if err := a.Release(ctx, &driver.Release{Key: r.Key, ID: r.ID}); err != nil {
		return err
	}
	kept := lockRequest("kept", "kept")
	if _, err := a.Acquire(ctx, kept); err != nil {
		return err
	}
	return a.Release(ctx, &driver.Release{Key: kept.Key, ID: kept.ID, Keep: time.Millisecond})
}

// lockTogether takes two locks in one step, and finds them held.
func lockTogether(ctx context.Context, a, b *Driver) error {
	rs := []*driver.Request{lockRequest("first", "{t}1"), lockRequest("second", "{t}2")}
	if _, err := a.AcquireAll(ctx, rs); err != nil {
		return err
	}
	if _, err := b.AcquireAll(ctx,
		[]*driver.Request{lockRequest("other", "{t}2"), lockRequest("more", "{t}3")}); !errors.Is(err, driver.ErrHeld) {
		return fmt.Errorf("of two, one is held: %w", err)
	}
	for _, r := range rs {
		if err := a.Release(ctx, &driver.Release{Key: r.Key, ID: r.ID}); err != nil {
			return err
		}
	}
	return nil
}

// waitForSignals has three wait for a condition, of whom the first gives up.
func waitForSignals(ctx context.Context, a, b *Driver) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var waits [3]*driver.Request
	var ends [len(waits)]chan error
	for i := range waits {
		held, wait := lockRequest(fmt.Sprint("held", i), "signalled"), lockRequest(fmt.Sprint("wait", i), "signalled")
		waits[i], ends[i] = wait, make(chan error, 1)
		if _, err := a.Acquire(ctx, held); err != nil {
			return err
		}
		parked := make(chan struct{})
		go func() { // ends with ctx, or with the driver
			_, err := a.CondWait(ctx, &driver.Release{Key: held.Key, ID: held.ID}, wait, func() { close(parked) })
			ends[i] <- err
		}()
		select {
		case <-parked:
		case err := <-ends[i]:
			return fmt.Errorf("a wait for a signal: %w", err)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if err := a.Release(ctx, &driver.Release{Key: waits[0].Key, ID: waits[0].ID, Undo: true}); err != nil {
		return err
	}
	if err := b.CondSignal(ctx, &driver.Signal{Key: waits[0].Key, ID: "signal"}); err != nil {
		return err
	}
	select {
	case err := <-ends[1]:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func lengthen(ctx context.Context, d *Driver, r *driver.Request, lease time.Duration) error {
	var result error
	d.Renew(ctx, []driver.Renewal{{Key: r.Key, ID: r.ID, Lease: lease, Owner: r.Owner, Label: "renewed"}},
		func(_ int, err error) {
			result = err
		})
	return result
}

func lockContended(ctx context.Context, a, b *Driver) error {
	first, second, third := lockRequest("c1", "x"), lockRequest("c2", "x"), lockRequest("c3", "x")
	if _, err := a.Acquire(ctx, first); err != nil {
		return err
	}
	done, err := waiting(ctx, b, second)
	if err != nil {
		return err
	}
	given, giveUp := context.WithCancel(ctx)
	left, err := waiting(given, a, third)
	if err != nil {
		giveUp()
		return err
	}
	found := 0
	for info, err := range a.Locks(ctx, "x") {
		if err != nil {
			giveUp()
			return err
		}
		found += len(info.Holders) + 10*len(info.Waiters)
	}
	giveUp()
	<-left
	if err := a.Release(ctx,
		&driver.Release{Key: third.Key, ID: third.ID, Undo: true, Horizon: time.Second}); err != nil {
		return err
	}
	if found != 21 {
		return fmt.Errorf("the list has %d", found)
	}
	if err := a.Release(ctx, &driver.Release{Key: first.Key, ID: first.ID}); err != nil {
		return err
	}
	if err := pushed(ctx, b, done); err != nil {
		return err
	}
	if err := lengthen(ctx, b, second, time.Minute); err != nil {
		return err
	}
	return b.Release(ctx, &driver.Release{Key: second.Key, ID: second.ID})
}

func lockTwice(ctx context.Context, a, b *Driver) error {
	first, again := lockRequest("n1", "named"), lockRequest("n2", "named")
	first.Named, again.Named = true, true
	first.Owner, again.Owner = "order-1", "order-1"
	if _, err := a.Acquire(ctx, first); err != nil {
		return err
	}
	if _, err := b.Acquire(ctx, again); err != nil {
		return err
	}
	if err := b.Release(ctx, &driver.Release{Key: again.Key, ID: again.ID}); err != nil {
		return err
	}
	if err := lengthen(ctx, a, first, time.Minute); err != nil {
		return err
	}
	return a.Release(ctx, &driver.Release{Key: first.Key, ID: first.ID})
}

// share has two readers in, of whom one leaves before the other.
func share(ctx context.Context, a, b *Driver) error {
	first, second := readRequest("s1"), readRequest("s2")
	for d, r := range map[*Driver]*driver.Request{a: first, b: second} {
		if _, err := d.Acquire(ctx, r); err != nil {
			return err
		}
		if err := lengthen(ctx, d, r, time.Minute); err != nil {
			return err
		}
	}
	if err := a.Release(ctx, &driver.Release{Key: first.Key, ID: first.ID}); err != nil {
		return err
	}
	return b.Release(ctx, &driver.Release{Key: second.Key, ID: second.ID})
}

func readRequest(id string) *driver.Request {
	r := lockRequest(id, "shared")
	r.Kind, r.Mode, r.Weight = driver.KindRWMutex, driver.Shared, 1
	return r
}

// watchAndBeAlive runs what is asked now and then for those who watch or wait.
func watchAndBeAlive(ctx context.Context, a, _ *Driver) error {
	key := driver.Key{Kind: driver.KindElection, Name: "watched"}
	listening := &slotListener{d: a}
	_, listening.slot = a.names.lock(key)
	if _, _, err := a.register(ctx, listening, key); err != nil {
		return err
	}
	r := lockRequest("w1", key.Name)
	r.Kind = key.Kind
	if _, err := a.Acquire(ctx, r); err != nil {
		return err
	}
	if err := a.Release(ctx, &driver.Release{Key: r.Key, ID: r.ID}); err != nil {
		return err
	}
	return a.sayAlive(ctx, heartbeatEvery).Err
}

func lockAndRequeue(ctx context.Context, a, _ *Driver) error {
	first, next := lockRequest("r1", "again"), lockRequest("r2", "again")
	if _, err := a.Acquire(ctx, first); err != nil {
		return err
	}
	if _, err := a.Requeue(ctx, &driver.Release{Key: first.Key, ID: first.ID}, next); err != nil {
		return err
	}
	if _, err := a.Requeue(ctx, &driver.Release{Key: first.Key, ID: first.ID},
		lockRequest("r3", "again")); !errors.Is(err, driver.ErrLost) {
		return fmt.Errorf("requeue of what is gone: %w", err)
	}
	return a.Release(ctx, &driver.Release{Key: next.Key, ID: next.ID})
}

func lockAndBreak(ctx context.Context, a, b *Driver) error {
	r := lockRequest("b1", "broken")
	lost := make(chan error, 1)
	r.Lost = func(reason driver.LostReason, _ error) {
		if reason != driver.LostBroken {
			lost <- fmt.Errorf("lost: %s", reason)
		}
		close(lost)
	}
	g, err := a.Acquire(ctx, r)
	if err != nil {
		return err
	}
	if err := b.Break(ctx, r.Key, g.Token); err != nil {
		return err
	}
	return pushed(ctx, a, lost)
}

func TestRights_OfTheDocumentation_AreEnoughAndNoneIsLeftOver(t *testing.T) {
	s := servers.RedisServer(t, &servers.RedisOptions{Users: []string{"nobody off"}})
	option, nodes := soloOption(s.Addr()), []*servers.RedisNode{s}
	rights := userRights(t, "locking")
	if err := locking(t.Context(), asUser(t, option, nil, nodes, rights)); err != nil {
		t.Fatalf("with %v: %v", rights, err)
	}
	denied, err := s.Do(t.Context(), "ACL", "LOG")
	if list, _ := denied.([]any); err != nil || len(list) != 1 || !strings.Contains(fmt.Sprint(list), " info ") {
		t.Errorf("what else than the INFO of the start was denied: %v, %v", denied, err)
	}
	for i, right := range rights {
		// A new user has no channels since 7.0. And that a PING is refused is answer enough for who asks
		// whether anybody is there, but it fills the server's log. HGETALL is for when the server has lost a
		// key, see mend in crowd.lua.
		if right == "resetchannels" || right == "+ping" || right == "+hgetall" {
			continue
		}
		fewer := slices.Delete(slices.Clone(rights), i, i+1)
		if err := locking(t.Context(), asUser(t, option, nil, nodes, fewer)); err == nil {
			t.Errorf("%s is not needed", right)
		} else if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("without %s: the error shows the password: %v", right, err)
		}
	}
}

func TestRights_ForAnotherDatabase(t *testing.T) {
	s := servers.RedisServer(t, &servers.RedisOptions{Users: []string{"nobody off"}})
	option, nodes := soloOption(s.Addr()), []*servers.RedisNode{s}
	option.SelectDB = 3
	rights := userRights(t, "locking")
	if err := locking(t.Context(), asUser(t, option, nil, nodes, rights)); err == nil {
		t.Error("+select is not needed")
	}
	if err := locking(t.Context(), asUser(t, option, nil, nodes, append(rights, "+select"))); err != nil {
		t.Errorf("with +select: %v", err)
	}
}

func TestRights_UnderSentinel(t *testing.T) {
	s := servers.RedisSentinel(t, 1, &servers.RedisOptions{Users: []string{"nobody off"}})
	option := rueidis.ClientOption{InitAddress: s.Sentinels(), Sentinel: rueidis.SentinelOption{MasterSet: s.Name()}}
	rights := userRights(t, "locking")
	if err := locking(t.Context(), asUser(t, option, nil, s.Nodes(), rights)); err == nil {
		t.Error("+role is not needed")
	}
	rights = userRights(t, "locking", "under Sentinel")
	if err := locking(t.Context(), asUser(t, option, nil, s.Nodes(), rights)); err != nil {
		t.Errorf("under Sentinel with %v: %v", rights, err)
	}
}

func TestRights_WithReplicasAndInACluster(t *testing.T) {
	t.Parallel()
	users := &servers.RedisOptions{Users: []string{"nobody off"}}
	r := servers.RedisReplicated(t, 1, users)
	rights := userRights(t, "locking", "with replicas")
	nodes := append([]*servers.RedisNode{r.Primary}, r.Replicas...)
	// A push is a hint with replicas, and has to be confirmed.
	if err := locking(t.Context(),
		asUser(t, soloOption(r.Primary.Addr()), &Options{Replicas: 1, ReplicaTimeout: patience}, nodes, rights)); err !=
		nil {
		t.Errorf("with replicas: %v", err)
	}

	c := servers.RedisCluster(t, 2, 0, users)
	nodes = []*servers.RedisNode{c.Owner(0), c.Owner(conn.Slots - 1)}
	option := rueidis.ClientOption{InitAddress: []string{nodes[0].Addr()}}
	rights = userRights(t, "locking", "in a Cluster")
	begin := asUser(t, option, nil, nodes, rights)
	if err := locking(t.Context(), begin); err != nil {
		t.Errorf("in a Cluster with %v: %v", rights, err)
	}
	// The other two are for slots that are given up after many others, and for slots that move.
	for _, right := range []string{"+cluster|slots", "+ssubscribe", "+spublish"} {
		without := slices.DeleteFunc(slices.Clone(rights), func(r string) bool { return r == right })
		if err := locking(t.Context(), asUser(t, option, nil, nodes, without)); err == nil {
			t.Errorf("%s is not needed in a Cluster", right)
		}
	}

	rights = userRights(t, "locking", "in a Cluster", "for the checks")
	d, err := asUser(t, option, nil, nodes, rights)()
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	for _, f := range d.Diagnose(t.Context()) {
		if f.Check == "permissions" || f.Check == "pushes" && f.Level != driver.LevelOK {
			t.Errorf("with all rights for the checks: %+v", f)
		}
	}
}
